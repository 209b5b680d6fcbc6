"""Figures by packages of R beside those of tacit, on records that both have."""
