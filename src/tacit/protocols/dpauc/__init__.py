"""DPAUC: noisy histograms of each client, in one round or in looks with a number."""
