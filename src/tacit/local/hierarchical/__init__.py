"""AUC from trees of counts under local differential privacy (Cormode and Markov 2023)."""
