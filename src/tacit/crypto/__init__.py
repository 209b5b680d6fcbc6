"""Cryptography: computing on what parties may not show each other."""
