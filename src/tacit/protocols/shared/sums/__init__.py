"""Sums over clients: their bounds, their noise, and one summed influence."""
