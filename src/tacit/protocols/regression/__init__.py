"""Figures of a regression: how predictions of numbers differ from outcomes."""
