"""A session between real parties: signed messages, sums, plans."""
