"""A server that lies in a secure sum: which strategies it has, and what they let it solve for."""
