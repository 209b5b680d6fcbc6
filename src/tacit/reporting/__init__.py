"""Results as published files: sealed JSON, its schema, reports to read, comparisons, model cards.

Everything here works on a result's JSON and needs no other part of the package.
"""
