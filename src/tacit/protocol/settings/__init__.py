"""How a protocol declares its settings, and what follows for commands and files."""
