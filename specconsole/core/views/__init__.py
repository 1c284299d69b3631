"""Immutable snapshots: the only facts that a pane may draw, one module a subject."""
