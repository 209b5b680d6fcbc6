"""Counts of records in cells of scores: their noise, areas, and where cells are placed."""
