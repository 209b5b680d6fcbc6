"""Laws and quantiles of errors by noise."""
