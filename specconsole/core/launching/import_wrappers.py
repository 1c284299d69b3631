"""What people put around a server's command, taken off again: `env`, `nohup`, `sudo`, `srun`, `docker run`, ..."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from specconsole.core.launching.shell_words import ShellWord, assignment, split_words

# Wrapper -> how many of its own arguments stand before the command (options are skipped by their dashes).
WRAPPERS: Mapping[str, int] = {
    "nohup": 0, "setsid": 0, "exec": 0, "time": 0, "command": 0, "stdbuf": 0, "sudo": 0, "numactl": 0, "nice": 0,
    "ionice": 0, "srun": 0, "unbuffer": 0, "caffeinate": 0, "timeout": 1, "taskset": 1, "chrt": 1, "systemd-run": 0,
    "strace": 0, "builtin": 0, "doas": 0, "mpirun": 0, "catchsegv": 0,
}  # fmt: skip
_VALUE_OPTIONS: Mapping[str, frozenset[str]] = {
    "nice": frozenset({"-n"}),
    "stdbuf": frozenset({"-o", "-e", "-i"}),
    "sudo": frozenset({"-u", "-g", "-h", "-p", "-C", "-D", "-r", "-t", "-T", "-U", "--user", "--group", "--chdir"}),
    "doas": frozenset({"-u", "-C"}),
    "exec": frozenset({"-a"}),
    "numactl": frozenset({"-N", "-m", "-C", "-i", "-p", "--cpunodebind", "--membind", "--physcpubind", "--interleave"}),
    "srun": frozenset({"-N", "-n", "-p", "-c", "-w", "-J", "-t", "-A", "-q", "-o", "-e", "-G", "-x", "-D", "--mpi",
                       "--nodes", "--ntasks", "--partition", "--gres", "--nodelist", "--job-name", "--time", "--export",
                       "--cpus-per-task", "--gpus", "--chdir", "--output", "--error", "--mem", "--account"}),
    "systemd-run": frozenset({"-p", "--property", "-u", "--unit", "-E", "--setenv"}),
    "mpirun": frozenset({"-n", "-np", "-x", "-H", "--host", "--hostfile"}),
    "ionice": frozenset({"-c", "-n"}),
    "timeout": frozenset({"-s", "-k", "--signal", "--kill-after"}),
    "strace": frozenset({"-o", "-e", "-s", "-p"}),
}  # fmt: skip
# Left out of a profile, and worth a word: they change where or as whom it runs.
TOLD = ("srun", "numactl", "taskset", "sudo", "doas", "timeout", "systemd-run", "mpirun", "strace", "chrt")
_DOCKER_VALUE_OPTIONS = frozenset(
    {
        "-e", "--env", "-v", "--volume", "-p", "--publish", "--name", "--shm-size", "--network", "--net", "--ipc",
        "--gpus", "-w", "--workdir", "-u", "--user", "--entrypoint", "--ulimit", "--cap-add", "--device", "--mount",
        "--runtime", "--env-file", "-m", "--memory", "--cpus", "--hostname", "-h", "--restart", "--label", "-l",
        "--security-opt", "--pid", "--platform", "--add-host", "--log-driver", "--log-opt", "--group-add",
        "--cpuset-cpus", "--tmpfs",
    }
)  # fmt: skip


@dataclass(slots=True)
class Around:
    """What the wrappers of one command say besides the command."""

    env: dict[str, str] = field(default_factory=dict)
    unset: set[str] = field(default_factory=set)
    cleared: bool = False
    """`env -i`: nothing of what was exported before arrives."""
    secrets: dict[str, str] = field(default_factory=dict)
    working_dir: str | None = None
    image: str | None = None
    notes: list[str] = field(default_factory=list)


def after_wrapper(name: str, words: list[str], around: Around) -> list[str]:
    """The words behind a wrapper; `words` begin behind its name."""
    options, words = _options(words, _VALUE_OPTIONS.get(name, frozenset()))
    for option, value in options:
        if name == "srun" and option == "--export":
            around.env.update(_pairs(value.split(",")))
        elif (name, option) in (("mpirun", "-x"), ("systemd-run", "-E"), ("systemd-run", "--setenv")):
            around.env.update(_pairs([value]))
        elif (name, option) in (("srun", "-D"), ("srun", "--chdir"), ("sudo", "-D"), ("sudo", "--chdir")):
            around.working_dir = value
    words = words[WRAPPERS[name] :]
    if name in ("sudo", "doas"):
        while words and (pair := assignment(ShellWord(words[0]))) is not None:
            around.env[pair[0]] = pair[1]
            words = words[1:]
    if name in TOLD:
        around.notes.append(f"`{name}` is left out: a profile's `command` may start with it")
    return words


def after_env(words: list[str], around: Around) -> list[str]:
    """The words behind `env` and its assignments. Raises ShellSyntaxError for a broken `-S`."""
    while words:
        word = words[0]
        if word in ("-i", "-", "--ignore-environment"):
            around.cleared, around.env = True, {}
        elif word in ("-u", "--unset", "-C", "--chdir", "-S", "--split-string") and len(words) > 1:
            words = _env_option(word, words[1], words[2:], around)
            continue
        elif match := re.fullmatch(r"(--unset|--chdir|--split-string)=(.*)|-([uCS])(.+)", word, re.DOTALL):
            option = match[1] or f"-{match[3]}"
            words = _env_option(option, match[2] if match[1] else match[4], words[1:], around)
            continue
        elif not word.startswith("-"):
            pair = assignment(ShellWord(word))
            if pair is None:
                break
            around.env[pair[0]] = pair[1]
            around.unset.discard(pair[0])
        words = words[1:]
    return words


def _env_option(option: str, value: str, rest: list[str], around: Around) -> list[str]:
    if option in ("-S", "--split-string"):
        return [word.text for word in split_words(value, {})[0]] + rest
    if option in ("-C", "--chdir"):
        around.working_dir = value
    else:
        around.unset.add(value)
        around.env.pop(value, None)
    return rest


def after_options(words: list[str], with_value: frozenset[str] = frozenset()) -> list[str]:
    """The words behind options; `--` ends them."""
    return _options(words, with_value)[1]


def _options(words: list[str], with_value: frozenset[str]) -> tuple[list[tuple[str, str]], list[str]]:
    found: list[tuple[str, str]] = []
    while words and words[0].startswith("-"):
        if words[0] == "--":
            return found, words[1:]
        name, sign, value = words[0].partition("=")
        takes = name in with_value and not sign
        found.append((name, words[1] if takes and len(words) > 1 else value))
        words = words[2 if takes else 1 :]
    return found, words


def _pairs(words: list[str]) -> dict[str, str]:
    return {name: value for name, sign, value in (word.partition("=") for word in words) if sign}


def container_words(words: list[str]) -> list[str] | None:
    """What stands behind `docker run`, `docker compose ... exec` and the like; None for another docker command."""
    name = words[0].rsplit("/", 1)[-1]
    options = frozenset({"-f", "--file", "-p", "--project-name", "--env-file", "--profile", "-H", "--context"})
    rest = after_options(words[1:], options)
    if name != "docker-compose" and rest[:1] in (["compose"], ["container"]):
        rest = after_options(rest[1:], options)
    return rest[1:] if rest[:1] in (["run"], ["exec"]) else None


def after_docker(words: list[str], around: Around) -> list[str]:
    """The server's command inside of a container; an image whose entry point is the server takes flags straight."""
    entry: list[str] = []
    options, words = _options(words, _DOCKER_VALUE_OPTIONS)
    for option, value in options:
        if option in ("-e", "--env"):
            name, equals, content = value.partition("=")
            if equals:
                around.env[name] = content
            else:
                around.secrets[name] = f"env:{name}"
        elif option in ("-p", "--publish"):
            around.notes.append(f"port mapping {value}: the server's own --port is used")
        elif option in ("-v", "--volume", "--mount"):
            around.notes.append(f"volume {value}: paths are those inside the container")
        elif option in ("-w", "--workdir"):
            around.working_dir = value
        elif option == "--entrypoint":
            entry = [value]
    if not words:
        return []
    around.image = words[0]
    around.notes.append(f"container {words[0]}: a profile runs the command on the host itself")
    rest = entry + words[1:]
    if not rest or rest[0].startswith("-"):
        if "vllm" in words[0]:
            return ["vllm", "serve", *rest]
        if "sglang" in words[0]:
            return ["python3", "-m", "sglang.launch_server", *rest] if rest else []
        if "llama" in words[0]:
            return ["llama-server", *rest]
    return rest


def shell_script(words: list[str]) -> str | None:
    """The text behind `-c` of a shell's arguments; None where there is none."""
    while words and words[0].startswith(("-", "+")):
        if re.fullmatch(r"-[A-Za-z]*c", words[0]):
            rest = words[1:]
            while rest and rest[0].startswith("-") and rest[0] != "--":
                rest = rest[1:]
            return rest[1] if rest[:1] == ["--"] and len(rest) > 1 else rest[0] if rest else ""
        # `-o pipefail`, `-eo pipefail`
        words = words[2 if re.fullmatch(r"[-+][A-Za-z]*o", words[0]) else 1 :]
    return None
