"""From an order (profile, host, overrides) to a launch that can be started: port, id, owner, secrets' values."""

from __future__ import annotations

import secrets as random_tokens
import sys
import time
from collections.abc import Mapping
from typing import Any

from specconsole import __version__
from specconsole.core.launching.command import build_spec, override
from specconsole.core.launching.preflight import Finding, stops
from specconsole.core.launching.profile import Profile
from specconsole.core.launching.spec import LaunchSpec
from specconsole.errors import BadInputError, RefusedError
from specconsole.ports import Launcher
from specconsole.services.launch_view import WhoWeAre


def new_launch_id(now_s: float) -> str:
    """Sorts by time, has a fixed length, and never repeats: `20261129-140211-3f9a2c`."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now_s))}-{random_tokens.token_hex(3)}"


async def order_spec(
    profile: Profile, overrides: Mapping[str, Any], launcher: Launcher, us: WhoWeAre, now_s: float
) -> LaunchSpec:
    """A spec with a port: the profile's, or a free one of the host."""
    wanted = override(profile, overrides)
    port = wanted.port if wanted.port is not None else await launcher.free_port()
    return build_spec(
        wanted,
        launch_id=new_launch_id(now_s),
        port=port,
        owner=us.owner,
        client_id=us.client_id,
        now_s=now_s,
        version=__version__,
        python=sys.executable if launcher.host == "local" else None,
    )


def refuse(findings: tuple[Finding, ...], host: str) -> None:
    """Raises for the findings that forbid a start, all of them in one line."""
    bad = stops(findings)
    if not bad:
        return
    kind = RefusedError if any(finding.check == "port" for finding in bad) else BadInputError
    tries = "; ".join(dict.fromkeys(finding.try_ for finding in bad if finding.try_))
    raise kind("; ".join(finding.text for finding in bad), where=host, try_=tries)
