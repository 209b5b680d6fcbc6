"""Counts and records from files and databases, by an engine that reads them where they are."""
