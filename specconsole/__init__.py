"""A terminal control console for people who tune speculative decoding on remote GPU hosts."""

__version__ = "0.1.0"
