"""Histograms of scores, the curves that follow from them, and maps that recalibrate."""
