"""Reports of devices: signed campaigns, a collector that takes them, and what they give."""
