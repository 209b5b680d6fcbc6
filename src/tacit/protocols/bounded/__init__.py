"""Bounded scores: means, quantiles and distributions of any value in public bounds."""
