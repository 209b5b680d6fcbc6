"""Reports of single records: symbols, packed bits, turns, flipped labels."""
