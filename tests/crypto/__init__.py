"""Tests of tacit.crypto."""
