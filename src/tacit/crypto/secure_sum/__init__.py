"""Sums of which nobody sees the terms (Bell et al. 2020, secure aggregation)."""
