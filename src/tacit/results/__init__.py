"""Results: what a protocol found, how wrong it may be, and what it cost."""
