"""Reports of one record under local differential privacy."""
