"""The coordinator's side of a run."""
