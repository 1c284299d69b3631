"""Hosts: their names, what they say about themselves, how to try them again, and what already runs on them."""
