"""Results of several parts of the records: groups, classes, sites, two models."""
