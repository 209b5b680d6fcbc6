"""The looks of a run that asks for the AUC, and the server that divides epsilon between them."""
