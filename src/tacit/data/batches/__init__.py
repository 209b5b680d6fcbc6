"""Batches of clients in flat arrays: ordered, divided, put together."""
