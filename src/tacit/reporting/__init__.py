"""Results as published files: fingerprinted JSON, its schema, reports, comparisons, model cards.

Everything here works on a result's JSON and needs no other part of the package.
"""
