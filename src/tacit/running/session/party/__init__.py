"""A party's side of a run: its file, its records, its debits, its answers."""
