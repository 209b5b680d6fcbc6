"""Records from files and tables in memory, through Arrow."""
