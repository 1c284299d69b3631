"""What one look at a launch folder says about the launch: a record -> facts for `lifecycle.step`. Pure."""

from __future__ import annotations

from specconsole.core.launching.folder import LaunchRecord
from specconsole.core.launching.lifecycle import FactName

_START_TAKES_S = 30.0
"""A start takes well under a second; on a slow network file system, some."""


def facts_of(record: LaunchRecord) -> tuple[FactName, ...] | None:
    """In this order; None when its process is gone, and only its log can say whether that was meant."""
    if record.stop is not None and record.ended and record.alive is not True:
        return ("stop-verified",)
    if record.alive:
        return ("process-up", "stop-asked" if record.being_stopped else "stop-given-up")
    if record.process is None:
        return _without_process(record)
    return None


def _without_process(record: LaunchRecord) -> tuple[FactName, ...] | None:
    if record.spec is not None and record.spec.adopted:
        # Only its log is known: that it can be read is all that can be said of it.
        return ("process-up",)
    if record.waits:
        return ("waits", "stop-asked" if record.being_stopped else "stop-given-up")
    if record.exited and (record.waiter is None or record.exit_status is not None):
        return None
    if record.waiter is not None:
        # What waited was ended before its turn came.
        return ("ended-clean",) if record.stop is not None else ("start-failed",)
    # Half written: its console is still at it, or died there.
    late = record.folder_age_s is None or record.folder_age_s > _START_TAKES_S
    return ("start-failed",) if late else ()
