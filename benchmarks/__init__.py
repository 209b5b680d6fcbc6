"""Benchmarks: each compares with a peer or a bound in one run, and prints a ratio."""
