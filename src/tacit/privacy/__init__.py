"""Privacy: noise with stated distributions, randomised response, and what they cost."""
