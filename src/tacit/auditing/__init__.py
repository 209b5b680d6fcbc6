"""Attacks on the protocols: what an attacker distinguishes, and which labels it infers."""
