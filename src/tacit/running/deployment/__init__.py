"""Runs a federation on Flower's programs, with keys and certificates of the federation."""
