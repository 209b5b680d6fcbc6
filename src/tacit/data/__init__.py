"""Records, held as batches of clients."""
