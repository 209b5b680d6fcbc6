"""Figures of a classifier from counts in score cells, and how they depend on each count."""
