"""Reports of single records, which every record randomises itself; pairs by computation."""
