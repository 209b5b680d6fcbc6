"""Protocols: each a conversation between a server and clients, with its guarantee and variance."""
