"""The Python interface: records in any form, protocols by name, and a default."""
