"""Units and scales of scores, and maps between them."""
