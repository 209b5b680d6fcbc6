"""Training over hospitals, with a private measurement after every round."""
