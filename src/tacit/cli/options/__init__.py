"""Options that commands share, and those made of what protocols declare."""
