"""What a client spent: one file, written before every answer."""
