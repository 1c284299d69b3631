"""`SshLink`: a host over SSH as `Transport` and `Link`, put together from its parts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from specconsole.adapters.ssh import known_hosts
from specconsole.adapters.ssh.commands import Commands
from specconsole.adapters.ssh.connect import Connected, Connector
from specconsole.adapters.ssh.direct import open_direct
from specconsole.adapters.ssh.errors import lost
from specconsole.adapters.ssh.files import SftpChannel, SftpFiles
from specconsole.adapters.ssh.sessions import Sessions
from specconsole.adapters.ssh.shell_files import ShellFiles
from specconsole.adapters.ssh.stream import open_stream
from specconsole.errors import LinkLostError, RefusedError, SpecconsoleError, TransportError
from specconsole.ports import Asker, ByteStream, Completed, FileStat, LinkAbilities, OfferedKey, RemoteFile

_OUTPUT_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Up:
    """Everything of one connection."""

    link: Connected
    sessions: Sessions
    commands: Commands
    sftp: SftpChannel
    shell_files: ShellFiles

    async def files(self) -> SftpFiles | ShellFiles:
        return await self.sftp.files() or self.shell_files


class SshLink:
    """A host over SSH. Satisfies `specconsole.ports.Link`."""

    def __init__(self, name: str, target: str = "") -> None:
        """`name` is what people call it; `target` what ssh_config knows it as, or `user@host[:port]`."""
        self._name = name
        self._connector = Connector(name, target or name)
        self._up: _Up | None = None
        self._why: TransportError | None = None
        self._heard_s: float | None = None
        self._connecting = asyncio.Lock()
        self._abilities: LinkAbilities | None = None

    @property
    def host(self) -> str:
        return self._name

    @property
    def connected(self) -> bool:
        return self._up is not None and not self._up.link.client.lost.done()

    @property
    def last_heard_s(self) -> float | None:
        return self._heard_s

    @property
    def abilities(self) -> LinkAbilities | None:
        """None before the first connect."""
        return self._abilities

    @property
    def offered_key(self) -> OfferedKey | None:
        refused = self._connector.refused
        if refused is None:
            return None
        key = refused.key
        return OfferedKey(key.get_algorithm(), key.get_fingerprint(), refused.settings.known_files[0])

    @property
    def key_trusted(self) -> bool:
        """Whether the last `connect` got past the host's key, whatever came after."""
        return self._connector.key_trusted

    async def connect(self, asker: Asker | None = None) -> None:
        async with self._connecting:
            if self.connected:
                return
            await self._take_down()
            try:
                self._up = await self._bring_up(asker)
            except TransportError as error:
                self._why = error
                raise
            except SpecconsoleError as error:
                self._why = TransportError(error.what, where=error.where, try_=error.try_)
                raise
            self._why = None
            self._heard()

    async def _bring_up(self, asker: Asker | None) -> _Up:
        link = await self._connector.connect(asker)
        sessions = Sessions(self._name)
        sftp = SftpChannel(link.connection, self._name, sessions)
        commands = Commands(link.connection, self._name, sessions)
        try:
            shell = await commands.start()
            await sftp.files()
        except BaseException:
            await commands.aclose()
            await link.aclose()
            raise
        self._abilities = LinkAbilities(
            sftp.works, sessions.limit, sessions.most_in_use, shell.chatter_bytes, shell.has_setsid,
            shell.has_timeout, str(link.connection.get_extra_info("server_version", "")),
            link.settings.jumps[-1] if link.beneath else "ProxyCommand" if link.proxy else "directly",
        )  # fmt: skip
        return _Up(link, sessions, commands, sftp, ShellFiles(self._name, commands.run))

    async def wait_lost(self) -> TransportError:
        up = self._up
        if up is None:
            return self._why or lost(self._name)
        error = await asyncio.shield(up.link.client.lost)
        return lost(self._name, error)

    async def ping(self, timeout_s: float) -> float:
        up = self._need()
        loop = asyncio.get_running_loop()
        start_s = loop.time()
        async with asyncio.timeout(timeout_s):
            if files := await up.sftp.files():
                await files.ping()
            else:
                await up.commands.run(["true"], b"", timeout_s, 4096)
        self._heard()
        return loop.time() - start_s

    async def trust(self, fingerprint: str) -> None:
        refused = self._connector.refused
        if refused is None or refused.key.get_fingerprint() != fingerprint:
            raise RefusedError("the host showed another key", where=self._name, try_="connect again and compare")
        where = refused.settings
        await asyncio.to_thread(
            known_hosts.add, where.known_files[0], where.key_name, where.key_port, known_hosts.key_text(refused.key)
        )
        self._connector.refused = None

    def _need(self) -> _Up:
        if self._up is None or not self.connected:
            raise LinkLostError(self._why.what if self._why else "not connected", where=self._name)
        return self._up

    def _heard(self) -> None:
        self._heard_s = asyncio.get_running_loop().time()

    async def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float = 30.0, max_output_bytes: int = _OUTPUT_BYTES
    ) -> Completed:
        done = await self._need().commands.run(argv, stdin, timeout_s, max_output_bytes)
        self._heard()
        return done

    async def run_sh(
        self, script: str, args: Sequence[str] = (), *, timeout_s: float = 30.0, max_output_bytes: int = _OUTPUT_BYTES
    ) -> Completed:
        text = script.encode("utf-8", "surrogateescape")
        return await self.run(
            ["sh", "-s", "--", *args], stdin=text, timeout_s=timeout_s, max_output_bytes=max_output_bytes
        )

    def stream(self, argv: Sequence[str]) -> AbstractAsyncContextManager[ByteStream]:
        return self._streaming(argv)

    @asynccontextmanager
    async def _streaming(self, argv: Sequence[str]) -> AsyncIterator[ByteStream]:
        up = self._need()
        await up.commands.make_room()
        async with open_stream(up.link.connection, self._name, up.sessions, argv) as stream:
            yield _HeardStream(self, stream)

    async def stat(self, path: str) -> FileStat | None:
        found = await (await self._need().files()).stat(path)
        self._heard()
        return found

    async def open_file(self, path: str) -> RemoteFile:
        return _HeardFile(self, await (await self._need().files()).open_file(path))

    async def read_file(self, path: str, *, max_bytes: int = _OUTPUT_BYTES) -> bytes:
        data = await (await self._need().files()).read_file(path, max_bytes)
        self._heard()
        return data

    async def write_file(self, path: str, data: bytes, *, mode: int = 0o600) -> None:
        await (await self._need().files()).write_file(path, data, mode)
        self._heard()

    async def list_dir(self, path: str) -> list[str]:
        return await (await self._need().files()).list_dir(path)

    async def open_connection(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await open_direct(self._need().link.connection, self._name, host, port)

    async def _take_down(self) -> None:
        up, self._up = self._up, None
        if up is not None:
            await up.commands.aclose()
            await up.sftp.drop()
            await up.link.aclose()

    async def aclose(self) -> None:
        await self._take_down()
        if self._why is None:
            self._why = TransportError("closed", where=self._name)


class _HeardStream:
    """Notes that the host was heard of."""

    def __init__(self, link: SshLink, stream: ByteStream) -> None:
        self._link = link
        self._stream = stream

    async def read(self, max_bytes: int = 65536) -> bytes:
        data = await self._stream.read(max_bytes)
        self._link._heard()
        return data

    async def aclose(self) -> None:
        await self._stream.aclose()


class _HeardFile:
    """Notes that the host was heard of."""

    def __init__(self, link: SshLink, file: RemoteFile) -> None:
        self._link = link
        self._file = file

    async def read_at(self, offset: int, max_bytes: int) -> bytes:
        data = await self._file.read_at(offset, max_bytes)
        self._link._heard()
        return data

    async def stat(self) -> FileStat:
        found = await self._file.stat()
        self._link._heard()
        return found

    async def aclose(self) -> None:
        await self._file.aclose()
