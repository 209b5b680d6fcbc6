"""MulticlassHistogram: one-versus-rest figures of a classifier with several classes."""
