"""Figures beyond the papers: floors, coverage of intervals, forecasts."""
