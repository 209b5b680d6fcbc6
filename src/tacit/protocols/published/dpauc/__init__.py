"""DPAUC as Sun et al. 2022b published it: noise on confusion counts, or flipped labels."""
