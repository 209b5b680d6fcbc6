"""The commands of a federation: plans and keys, a server, parties that join it, and runs."""
