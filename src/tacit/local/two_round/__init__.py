"""AUC in two rounds: a first estimate, then one number per record."""
