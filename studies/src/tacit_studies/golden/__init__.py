"""Figures by packages of R and Python beside those of tacit, on records that both have."""
