"""Time to event: survival curves, concordance and figures at horizons from counts in cells."""
