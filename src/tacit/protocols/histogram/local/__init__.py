"""ScoreHistogram's reports of single records: rounds, counts of unary reports, devices."""
