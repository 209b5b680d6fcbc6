"""AUC from noisy confusion counts at thresholds (Sun et al. 2022, DPAUC)."""
