"""How well scores are calibrated, and maps that recalibrate them."""
