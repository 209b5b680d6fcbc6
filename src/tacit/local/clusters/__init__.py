"""Reports of the local model by many records of one client each, as sums over batches."""
