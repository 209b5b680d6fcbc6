"""AUC on masked values and in ciphertexts (after Baykara et al. 2024, FHE-AUC)."""
