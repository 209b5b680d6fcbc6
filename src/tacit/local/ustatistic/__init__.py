"""Pairwise statistics from local reports (Bell et al. 2020)."""
