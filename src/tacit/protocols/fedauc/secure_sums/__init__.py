"""FedAUC by secure sums: the server sees sums of ranks only."""
