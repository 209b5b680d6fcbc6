"""GroupedHistogram: figures of groups of records whose membership is protected."""
