"""Results as JSON: written, read back, and checked against the published schema."""
