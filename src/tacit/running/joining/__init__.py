"""How a site joins a federation: an invitation out, an answer back, and the roster of all sites."""
