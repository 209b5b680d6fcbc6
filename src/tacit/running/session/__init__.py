"""A session between real parties: signed messages, state, debits, sums."""
