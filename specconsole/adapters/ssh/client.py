"""What the host asks while we log in: whether its key is trusted, and what only a person can answer."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

import asyncssh

from specconsole.core.hosts.plain_text import one_line
from specconsole.ports import Asker

_TRIES = 3


class Client(asyncssh.SSHClient):
    """One log-in. Keys are never trusted here: the offered one is kept for the person to look at."""

    def __init__(self, host: str, asker: Asker | None, encrypted_keys: Sequence[str]) -> None:
        self.host = host
        self.asker = asker
        self.offered: asyncssh.SSHKey | None = None
        self.wanted = ""
        """What the host asked for and nobody answered; "" when nothing."""
        self.declined = False
        self.answered = False
        self.banner = ""
        self.key_trusted = False
        """The key exchange is over: the host's key was one we know."""
        self._connection: asyncssh.SSHClientConnection | None = None
        self.unlocked: list[asyncssh.SSHKey] = []
        self.lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        self._encrypted = list(encrypted_keys)
        self._passwords = 0

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        self._connection = conn

    @property
    def reached(self) -> bool:
        """The host spoke SSH with us: its version line came. That TCP connects says nothing yet."""
        return self._connection is not None and bool(self._connection.get_extra_info("server_version"))

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.lost.done():
            self.lost.set_result(exc)

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self.offered = key
        return False

    def validate_host_ca_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        return False

    def begin_auth(self, username: str) -> None:
        self.key_trusted = True

    def auth_banner_received(self, msg: str, lang: str) -> None:
        self.banner = one_line(msg, 500)
        if self.asker is not None and self.banner:
            self.asker.tell(self.host, self.banner)

    async def _ask(self, prompt: str, *, secret: bool = True) -> str | None:
        if self.asker is None:
            self.wanted = self.wanted or prompt
            return None
        if self.declined:
            return None
        answer = await self.asker.ask(self.host, one_line(prompt), secret=secret)
        if answer is None:
            self.declined, self.wanted = True, prompt
        else:
            self.answered = True
        return answer

    async def public_key_auth_requested(self) -> asyncssh.SSHKey | None:
        """Called when the agent's keys and the plain files are used up: encrypted files, one after the other."""
        while self._encrypted:
            path = self._encrypted.pop(0)
            short = _short(path)
            for _ in range(_TRIES):
                passphrase = await self._ask(f"passphrase for {short}")
                if passphrase is None:
                    break
                key = await asyncio.to_thread(_unlock, path, passphrase)
                if key is not None:
                    self.unlocked.append(key)
                    return key
        return None

    async def password_auth_requested(self) -> str | None:
        self._passwords += 1
        if self._passwords > _TRIES:
            return None
        return await self._ask("password" if self._passwords == 1 else "password (the last one was refused)")

    def kbdint_auth_requested(self) -> str | None:
        if self.asker is None:
            self.wanted = self.wanted or "an answer on the keyboard (password or second factor)"
            return None
        return None if self.declined or self._passwords > _TRIES else ""

    async def kbdint_challenge_received(
        self, name: str, instructions: str, lang: str, prompts: Sequence[tuple[str, bool]]
    ) -> Sequence[str] | None:
        if self.asker is not None and (name or instructions):
            self.asker.tell(self.host, one_line(f"{name} {instructions}"))
        if prompts:
            self._passwords += 1
        answers = []
        for prompt, echo in prompts:
            answer = await self._ask(prompt, secret=not echo)
            if answer is None:
                return None
            answers.append(answer)
        return answers


def _short(path: str) -> str:
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if path.startswith(home + "/") else path


def _unlock(path: str, passphrase: str) -> asyncssh.SSHKey | None:
    try:
        return asyncssh.read_private_key(path, passphrase)
    except (asyncssh.KeyEncryptionError, asyncssh.KeyImportError, OSError, ValueError):
        return None
