"""Sums and products of sums on masked values: a prime field, masks, and a blinding number."""
