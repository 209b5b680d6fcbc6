"""A noisy histogram of scores by class, from which all curves follow."""
