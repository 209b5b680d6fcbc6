"""AUC on ciphertexts (Baykara et al. 2024, FHE-AUC)."""
