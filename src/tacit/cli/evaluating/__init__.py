"""The command ``tacit evaluate`` and its forms: default, groups, classes, databases."""
