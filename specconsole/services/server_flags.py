"""The flags that a host's server really takes: its version, then its own `--help`, kept until the build changes."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from specconsole.core.launching.build_identity import BUILD_IDENTITY, build_arguments, parse_build
from specconsole.core.launching.command import command_words
from specconsole.core.launching.engine_flags import EngineFlags
from specconsole.core.launching.engine_settings import ENGINE_FLAGS
from specconsole.core.launching.help_text import FlagCatalogue, parse_help
from specconsole.core.launching.imported_command import engine_of
from specconsole.core.launching.preflight import Finding
from specconsole.core.launching.profile import Profile
from specconsole.core.launching.spec import LaunchSpec
from specconsole.core.launching.versions import Version, parse_version
from specconsole.ports import Transport

# $1: an environment's folder or "", $2: a folder to start in or "", $3: how many variables follow, then the command.
ASK_HELP = """\
{
venv=$1; dir=$2; count=$3; shift 3
case $venv in '~/'*) venv=$HOME/${venv#'~/'} ;; esac
case $dir in '~/'*) dir=$HOME/${dir#'~/'} ;; esac
while [ "$count" -gt 0 ]; do export "$1"; shift; count=$((count - 1)); done
name=$1; shift
case $name in '~/'*) name=$HOME/${name#'~/'} ;; esac
[ -z "$venv" ] || PATH=$venv/bin:$PATH
[ -z "$dir" ] || cd "$dir" || exit 9
export PATH NO_COLOR=1 COLUMNS=100
exec "$name" "$@" </dev/null
}
"""
_VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_NOT_INSTALLED = "No module named"
_ENVIRONMENT = "`environment`, the folder of the environment that has it"
_FEWEST = 5
"""A text with fewer flags is no server's help."""
_SLOW_S = 3.0
"""What fails quicker is asked again each time: it may be mended meanwhile."""
_HELP_LIMIT_BYTES = 4 * 1024 * 1024
_LLAMA_BUILD = re.compile(r"version: (\d{4,})\b")
"""`version: 10434 (b9a1234)` (llama-server --version)."""


@dataclass(frozen=True, slots=True)
class FlagShelf:
    """Where help texts are kept, and the lists that ship with the console. Calls read files: not for the loop."""

    read: Callable[[Sequence[str]], str | None]
    keep: Callable[[Sequence[str], str], None]
    built_in: Callable[[EngineFlags], FlagCatalogue]
    slow: Callable[[Sequence[str], float], str | None] = lambda _key, _limit_s: None
    """Why it was asked in vain a short while ago for at least so many seconds; None where it may be asked."""
    keep_slow: Callable[[Sequence[str], str, float], None] = lambda _key, _why, _limit_s: None


@dataclass(frozen=True, slots=True)
class ServerFlags:
    """What was learned of a server's flags."""

    version: Version | None
    catalogue: FlagCatalogue | None
    certain: bool
    """True when the list is the server's own, or of exactly its version."""
    findings: tuple[Finding, ...] = ()


async def read_server_flags(
    transport: Transport,
    shelf: FlagShelf,
    profile: Profile,
    spec: LaunchSpec,
    *,
    limit_s: float,
    told: Callable[[str], None],
) -> ServerFlags:
    """`limit_s`: how long its help may take (importing torch takes up to a minute). Raises TransportError.

    Only a command that is known to be the engine's own is asked: what a script does with `--help` nobody knows.
    """
    flags = ENGINE_FLAGS.get(profile.engine)
    if flags is None:
        return ServerFlags(None, None, False)
    # Its first words as they are run, `{python}` replaced.
    command = spec.argv[: len(command_words(profile))]
    own = engine_of(command) == profile.engine
    build, version_text = await _build(transport, profile, spec, command, own=own)
    version = parse_version(version_text)
    findings = _version_findings(profile, build, version_text, own=own)
    built_in = await asyncio.to_thread(shelf.built_in, flags)
    if not own:
        name = command[0] if command else profile.engine
        note = Finding("flag", "note", f"{name} is not asked for its flags: {built_in.source} serves", name="source")
        return ServerFlags(version, built_in, False, (*findings, note))
    key = (transport.host, profile.environment or "", json.dumps(command), json.dumps(build, sort_keys=True))
    text = await asyncio.to_thread(shelf.read, key)
    why = ""
    if text is None and (before := await asyncio.to_thread(shelf.slow, key, limit_s)) is not None:
        why = f"{before} a short while ago"
    elif text is None:
        start_s = asyncio.get_running_loop().time()
        told(f"{profile.name}: asking {transport.host}'s {profile.engine} for its flags (up to {limit_s:.0f} s, once)")
        text, why = await _ask(transport, flags, profile, command, limit_s)
        if text is not None:
            await asyncio.to_thread(shelf.keep, key, text)
        elif asyncio.get_running_loop().time() - start_s >= min(limit_s, _SLOW_S):
            await asyncio.to_thread(shelf.keep_slow, key, why, limit_s)
    if text is not None:
        source = f"{profile.engine} {version_text or '(version unknown)'} on {transport.host}"
        catalogue = FlagCatalogue(parse_help(text), source, flags.abbreviates)
        return ServerFlags(version, catalogue, True, findings)
    same = version is not None and version == flags.built_in_version
    if _NOT_INSTALLED in why:
        findings = (Finding("version", "stop", f"{profile.engine} can't be imported: {why}", _ENVIRONMENT),)
    said = Finding("flag", "note" if same else "warning", f"its --help {why}: {built_in.source} serves", name="source")
    return ServerFlags(version, built_in, same, (*findings, said))


async def _build(
    transport: Transport, profile: Profile, spec: LaunchSpec, command: Sequence[str], *, own: bool
) -> tuple[dict[str, str], str | None]:
    """The build's identity, and the engine's version in it."""
    done = await transport.run_sh(BUILD_IDENTITY, build_arguments(spec), timeout_s=20)
    build = parse_build(done.stdout)
    build.pop("driver", None)
    if profile.engine != "llamacpp":
        return build, build.get(profile.engine) or build.get(f"{profile.engine}_cpu")
    if own and not command[0].rpartition("/")[2].startswith("python"):
        answer = await transport.run_sh(ASK_HELP, _help_arguments(profile, [*command, "--version"]), timeout_s=20)
        said = (answer.stdout + answer.stderr).decode("utf-8", "replace")
        build["program"] = said[:400]
        if match := _LLAMA_BUILD.search(said):
            return build, f"b{match[1]}"
    return build, None


def _version_findings(
    profile: Profile, build: Mapping[str, str], version: str | None, *, own: bool
) -> tuple[Finding, ...]:
    if version is not None:
        commit = f", commit {build['commit'][:12]}" if build.get("commit") else ""
        changed = ", with changes that are not committed" if build.get("dirty") else ""
        return (Finding("version", "ok", f"{profile.engine} {version}{commit}{changed}"),)
    if own and build.get("python") and profile.engine != "llamacpp":
        text = f"{profile.engine} is not installed in the Python that would run it ({build['python']})"
        return (Finding("version", "warning", text, _ENVIRONMENT),)
    written = f"; rules go by {profile.engine_version}, as the profile says" if profile.engine_version else ""
    return (Finding("version", "note", f"the version of {profile.engine} is not known{written}"),)


async def _ask(
    transport: Transport, flags: EngineFlags, profile: Profile, command: Sequence[str], limit_s: float
) -> tuple[str | None, str]:
    """The help text, or None and why not."""
    why = ""
    # vLLM before `--help=all` knows `--help` alone.
    for words in dict.fromkeys((flags.help_words, ("--help",))):
        try:
            done = await transport.run_sh(
                ASK_HELP,
                _help_arguments(profile, [*command, *words]),
                timeout_s=limit_s,
                max_output_bytes=_HELP_LIMIT_BYTES,
            )
        except TimeoutError:
            return None, f"took over {limit_s:g} s"
        text = done.stdout.decode("utf-8", "replace")
        if done.exit_status == 0 and len(parse_help(text)) >= _FEWEST:
            return text, ""
        last = (done.stderr.decode("utf-8", "replace").strip().splitlines() or ["nothing said"])[-1][:200]
        why = f"failed ({last})" if done.exit_status != 0 else "names no flags"
    return None, why


def _help_arguments(profile: Profile, command: Sequence[str]) -> list[str]:
    # Variables matter to what is imported; a name that sh can't export is left out.
    env = [f"{name}={value}" for name, value in profile.env.items() if _VARIABLE.fullmatch(name)]
    return [profile.environment or "", profile.working_dir or "", str(len(env)), *env, *command]
