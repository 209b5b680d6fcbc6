"""Sums whose terms stay hidden (Bell et al. 2020, secure aggregation)."""
