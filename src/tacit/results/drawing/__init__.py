"""Pictures and tables of results, in one style."""
