"""Beyond labels of 0 and 1: scores and predictions in public bounds, and times to an event."""
