"""AUC from noisy rank sums: label differential privacy (Sun et al. 2022, FedAUC)."""
