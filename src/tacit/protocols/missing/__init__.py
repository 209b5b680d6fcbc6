"""MissingRecords: how many records were left out for lack of a score or a label."""
