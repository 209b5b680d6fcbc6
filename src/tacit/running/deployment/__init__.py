"""Runs a federation on Flower's programs: keys and certificates, sites that join, servers, runs."""
