"""Small federations for tests."""

from tacit.testing.checks import binormal_clients
from tacit.testing.laws import federations

__all__ = ["binormal_clients", "federations"]
