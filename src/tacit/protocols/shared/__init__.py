"""What several protocols share, and nothing that names one of them."""
