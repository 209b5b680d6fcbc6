"""Protocols as their papers give them, each named after its authors and year."""
