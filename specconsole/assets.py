"""Files that ship with the console and are no code: themes, profiles, workloads.

An installed package carries them beside this module, a checkout at its root.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from specconsole.errors import SpecconsoleError

Kind = Literal["themes", "profiles", "profiles/workloads"]


def shipped_folder(kind: Kind) -> Path:
    """The folder of `kind`. Raises SpecconsoleError when this installation has lost it."""
    package = Path(__file__).resolve().parent
    for root in (package, package.parent):
        if (root / kind).is_dir():
            return root / kind
    raise SpecconsoleError(f"the {kind} that ship with it are missing", where=str(package), try_="install it again")


def shipped_files(kind: Kind) -> dict[str, Path]:
    """Every .toml file of `kind` by its name without the suffix, sorted by name."""
    return {path.stem: path for path in sorted(shipped_folder(kind).glob("*.toml"))}
