"""known_hosts files: what they say about a host, and how a key is added to one.

OpenSSH's own files, so that a key trusted here is trusted by `ssh` and the other way round. A line that can't be
read is skipped, as OpenSSH does; asyncssh would refuse the whole file.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from specconsole.errors import BadInputError, SpecconsoleError

USER_FILES = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
GLOBAL_FILES = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
DEFAULT_PORT = 22


@dataclass(frozen=True, slots=True)
class Entry:
    """Host keys on file for one host, each as `algorithm base64`, with the file and line that say so."""

    key: str
    fingerprint: str
    place: str
    """`FILE:LINE`."""


def load(files: Sequence[str]) -> asyncssh.SSHKnownHosts:
    """All readable lines of all readable files."""
    lines: list[str] = []
    for _, _, line in _lines(files):
        try:
            asyncssh.import_known_hosts(line)
        except (ValueError, asyncssh.Error):
            continue
        lines.append(line)
    return asyncssh.import_known_hosts("\n".join(lines))


def entries(files: Sequence[str], host: str, address: str, port: int) -> list[Entry]:
    """The plain host keys on file for this host and port, hashed entries included."""
    found = []
    for path, number, line in _lines(files):
        try:
            known = asyncssh.import_known_hosts(line)
            keys = known.match(host, address, None if port == DEFAULT_PORT else port)[0]
        except (ValueError, asyncssh.Error):
            continue
        found += [Entry(key_text(key), key.get_fingerprint(), f"{path}:{number}") for key in keys]
    return found


def _lines(files: Sequence[str]) -> list[tuple[str, int, str]]:
    found = []
    for name in files:
        path = os.path.expanduser(name)
        try:
            text = Path(path).read_text("utf-8", "replace")
        except OSError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip() and not line.lstrip().startswith("#"):
                found.append((path, number, line.strip()))
    return found


def key_text(key: asyncssh.SSHKey) -> str:
    """`ssh-ed25519 AAAA...`, without a comment."""
    return " ".join(key.export_public_key("openssh").decode().split()[:2])


def add(path: str, host: str, port: int, key: str) -> None:
    """Appends one line, in one write, under a lock, with the file flushed to the disk.

    The name is hashed where the file's other names are. A key already there is not written twice. Raises
    SpecconsoleError when the file can't be written.
    """
    name = host if port == DEFAULT_PORT else f"[{host}]:{port}"
    if any(c.isspace() or not c.isprintable() or c in ",*?!#|" for c in name):
        raise BadInputError(f"not a name for known_hosts: {name!r}")
    target = Path(os.path.expanduser(path))
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(target, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            present = _read_all(fd)
            if any(entry.key == key for entry in entries([str(target)], host, "", port)):
                return
            hashed = any(line.startswith(b"|1|") for line in present.splitlines())
            line = f"{_hashed(name) if hashed else name} {key}\n".encode()
            if present and not present.endswith(b"\n"):
                line = b"\n" + line
            if os.write(fd, line) != len(line):
                raise OSError(0, "the disk is full")
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        raise SpecconsoleError(f"can't be written: {error.strerror}", where=str(target)) from None


def _read_all(fd: int) -> bytes:
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        raise OSError(0, "not a regular file")
    os.lseek(fd, 0, os.SEEK_SET)
    parts = []
    while part := os.read(fd, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def _hashed(name: str) -> str:
    """`|1|salt|hash`, as `HashKnownHosts yes` writes it (HMAC-SHA1 over the name)."""
    salt = secrets.token_bytes(20)
    digest = hmac.new(salt, name.encode(), hashlib.sha1).digest()
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"
