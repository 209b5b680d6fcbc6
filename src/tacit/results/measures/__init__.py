"""Figures that follow from a score histogram, each with its errors, at no further cost."""
