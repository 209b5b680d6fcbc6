"""Pairwise statistics of matched clients, computed two by two (Bell et al. 2020)."""
