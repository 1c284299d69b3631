"""Modal forms: each one asks one thing and gives back a value, or None when the person left it."""
