"""Who carries a conversation's messages."""
