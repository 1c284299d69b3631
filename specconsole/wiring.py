"""Composition root: the only place that builds adapters and hands them to services."""
