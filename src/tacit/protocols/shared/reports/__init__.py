"""Reports of single records: symbols, turns, flipped labels."""
