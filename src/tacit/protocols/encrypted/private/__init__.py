"""The AUC by masked sums with noise, in two rounds."""
