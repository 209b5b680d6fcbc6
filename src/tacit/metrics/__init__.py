"""Metrics: pure functions of scores, labels, ranks and counts. They know nothing of privacy."""
