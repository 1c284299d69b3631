"""Servers that somebody started by hand: found, offered, adopted. See `core.hosts.adoption` for what that means."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from specconsole.core.hosts.adoption import ADOPT_SH, adopted_id, adopted_log_id, adopted_spec, parse_adopted
from specconsole.core.hosts.discovery import DISCOVER_SH, FoundEngine, parse_discovered
from specconsole.core.launching.shell_words import ShellSyntaxError, split_words
from specconsole.core.launching.spec import LaunchSpec
from specconsole.errors import BadInputError, NotFoundError, SpecconsoleError
from specconsole.ports import Transport
from specconsole.services.commands import AttachOrder, FoundServer
from specconsole.services.supervisor import Supervisor

_LOOK_S = 30.0


async def discover(transport: Transport) -> tuple[FoundEngine, ...]:
    """Every running engine that the account can see, ours included. Raises TransportError, TimeoutError."""
    done = await transport.run_sh(DISCOVER_SH, timeout_s=_LOOK_S)
    return parse_discovered(done.stdout)


class Adoption:
    """What may be asked about servers that are not launches of ours."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._sup = supervisor

    async def found_servers(self, host: str) -> Sequence[FoundServer]:
        """Running engines that no console watches: neither launched by one nor adopted yet."""
        tools = await self._sup.host(host)
        adopted = {
            (record.process.boot, record.process.pid, record.process.start_ticks)
            for watch in self._sup.watches.values()
            if (record := watch.record).process is not None and watch.host == host
        }
        return [
            FoundServer(
                host, one.pid, one.engine, one.port, one.user, shlex.join(one.shown_argv),
                one.log_path or shlex.join(one.log_command) or None,
            )
            for one in await discover(tools.transport)
            if one.launch_id is None and (one.boot, one.pid, one.start_ticks) not in adopted
        ]  # fmt: skip

    async def attach(self, order: AttachOrder) -> str:
        """Adopts one; returns its launch id. Raises NotFoundError, BadInputError, SpecconsoleError."""
        self._sup.may_change(order.host)
        tools = await self._sup.host(order.host)
        spec, found = await self._spec(order, tools.transport)
        pid, ticks = (str(found.pid), str(found.start_ticks)) if found is not None else ("", "")
        done = await tools.transport.run_sh(
            ADOPT_SH, [spec.launch_id, spec.to_json_line(), pid, ticks, spec.log_path], timeout_s=_LOOK_S
        )
        parse_adopted(done.stdout)
        record = await tools.launcher.observe(spec.launch_id)
        if record is None:
            raise SpecconsoleError("the launch folder vanished", where=order.host)
        self._sup.watch(tools, record)
        return spec.launch_id

    async def _spec(self, order: AttachOrder, transport: Transport) -> tuple[LaunchSpec, FoundEngine | None]:
        engines = await discover(transport)
        log_path, log_command = "", tuple[str, ...]()
        if order.by == "log":
            log_path = await self._absolute(transport, order.value)
            found = next((one for one in engines if one.log_path == log_path), None)
        elif order.by == "log-command":
            log_command = self._words(order.value)
            found = next((one for one in engines if one.log_command and one.log_command[-1] in log_command), None)
        elif order.by in ("pid", "port"):
            if not order.value.isdigit():
                raise BadInputError(f"not a number: {order.value!r}", where=order.host)
            number = int(order.value)
            found = next((e for e in engines if (number in e.pids if order.by == "pid" else number == e.port)), None)
            if found is None:
                raise NotFoundError(
                    f"no engine that we know has {order.by} {number}", where=order.host,
                    try_="give its log instead (by log path or log command)",
                )  # fmt: skip
            log_path, log_command = found.log_path or "", found.log_command
        else:
            raise BadInputError(f"a server can't be adopted by {order.by!r}")
        if found is not None and found.launch_id is not None:
            raise BadInputError(f"it is launch {found.launch_id} already", where=order.host, try_="specconsole status")
        if not log_path and not log_command:
            raise NotFoundError(
                "its output goes to no file that can be read (a terminal, a pipe)", where=order.host,
                try_="attach by its log path, or by a command that prints it",
            )  # fmt: skip
        launch_id = (
            adopted_id(found.boot, found.pid, found.start_ticks)
            if found is not None
            else adopted_log_id(log_path or shlex.join(log_command))
        )
        spec = adopted_spec(
            launch_id, found=found, name=order.name, log_path=log_path, log_command=tuple(log_command),
            at_s=self._sup.parts.clock.wall_s(),
        )  # fmt: skip
        return spec, found

    async def _absolute(self, transport: Transport, path: str) -> str:
        """As the kernel would name it, so that it can be compared with open descriptors."""
        done = await transport.run(["readlink", "-f", "--", path])
        found = done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")
        if not done.ok or not found or await transport.stat(found) is None:
            raise NotFoundError("no such file", where=f"{transport.host}:{path}")
        return found

    def _words(self, text: str) -> tuple[str, ...]:
        try:
            words, _ = split_words(text, {})
        except ShellSyntaxError as error:
            raise BadInputError(str(error), where="log command") from None
        if not words or any(word.operator for word in words):
            raise BadInputError(
                "a log command is one command, without pipes and redirections", try_="docker logs -f NAME"
            )
        return tuple(word.text for word in words)
