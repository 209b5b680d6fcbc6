"""AUC on masked values (after Baykara et al. 2024, FHE-AUC, whose own form is published.fhe)."""
