"""Counts under homomorphic encryption: engines, keys and messages."""
