"""What a protocol declares beside its steps, for plans, audits, reports and laws."""
