"""Ranks that clients compute together, on secret shares."""
