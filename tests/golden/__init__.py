"""Golden values: what every protocol asked, answered, spent and concluded under fixed seeds."""
