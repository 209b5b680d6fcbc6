"""Flower's programs: guarded, prepared, started, and ended with their parent."""
