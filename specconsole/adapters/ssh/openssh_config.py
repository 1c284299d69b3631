"""A person's ssh_config as OpenSSH itself resolves it, for files that asyncssh's parser gives up on.

asyncssh 2.24 refuses `Match exec` with an `=` in its command, `Match localnetwork` and text that is no UTF-8.
`ssh -G` prints what holds for one host; what it prints without any file are its defaults. The difference is what the
person set, and of that only what a connection of ours goes by is kept.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import platformdirs

_KEPT = {
    "hostname", "user", "port", "identityfile", "identitiesonly", "identityagent", "certificatefile", "proxyjump",
    "proxycommand", "userknownhostsfile", "globalknownhostsfile", "hostkeyalias", "addressfamily", "bindaddress",
    "preferredauthentications",
}  # fmt: skip


def resolved_by_openssh(config_file: str, host: str, user: str | None, limit_s: float) -> str | None:
    """Path of a file with the settings of `host`; None where there is no `ssh`, or it refuses too. Blocks.

    Raises TimeoutError after `limit_s`. The file (0600, in the cache folder) is written anew with each call.
    """
    ssh = shutil.which("ssh")
    if ssh is None or host.startswith("-"):
        return None
    who = [] if user is None else ["-l", user]
    found = _printed([ssh, "-G", "-F", config_file, *who, host], limit_s)
    plain = _printed([ssh, "-G", "-F", os.devnull, *who, host], limit_s)
    if found is None or plain is None:
        return None
    defaults = set(plain)
    kept = [line for line in found if line not in defaults and line.partition(" ")[0].lower() in _KEPT]
    return _write(host, "".join(f"{line}\n" for line in kept))


def _printed(argv: list[str], limit_s: float) -> list[str] | None:
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    except OSError:
        return None
    return done.stdout.decode("utf-8", "replace").splitlines() if done.returncode == 0 else None


def _write(host: str, text: str) -> str:
    folder = Path(platformdirs.user_cache_path("specconsole")) / "ssh"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / f"{hashlib.sha256(host.encode()).hexdigest()[:16]}.conf"
    handle, name = tempfile.mkstemp(dir=folder)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    Path(name).replace(path)
    return str(path)
