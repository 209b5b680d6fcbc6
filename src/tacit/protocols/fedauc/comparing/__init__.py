"""Two models' AUCs from noisy rank sums, at one cost of label privacy."""
