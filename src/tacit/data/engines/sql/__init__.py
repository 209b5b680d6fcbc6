"""The statements: how engines write them, and what they are told by tables of numbers."""
