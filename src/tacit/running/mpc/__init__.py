"""Computations between parties that no one sees in parts."""
