"""The AUC in ciphertexts: packed integers, the paper's CKKS, and checks of the aggregator."""
