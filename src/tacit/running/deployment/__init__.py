"""Runs a federation on Flower's own programs, with keys and certificates of its own."""
