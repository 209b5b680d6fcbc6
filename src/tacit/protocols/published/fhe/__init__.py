"""FHE-AUC of Baykara et al. 2024: packed integers, their CKKS, and checks of the aggregator."""
