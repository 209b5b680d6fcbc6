"""Scores in cells: codes and scales of scores, cells and their counts."""
