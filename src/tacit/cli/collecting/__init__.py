"""``tacit collect``, ``tokens``, ``stage`` and ``estimate``: campaigns of devices."""
