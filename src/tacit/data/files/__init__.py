"""Files as people have them: how values are written, lines, and all problems at once."""
