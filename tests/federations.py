"""Small federations for tests."""

from tacit.testing.federations import binormal_clients, federations

__all__ = ["binormal_clients", "federations"]
