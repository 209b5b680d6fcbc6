"""Tables beside a report: a paper's, a model card's, and the items of TRIPOD+AI."""
