"""Samplers of noise: exact ones from the system's entropy, simulated ones from a seed."""
