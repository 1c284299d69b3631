"""A pasted launch command -> profile settings: `NCCL_ALGO=Tree nohup python -m sglang.launch_server ... > log 2>&1 &`.

Knows what people put around a server: variable prefixes, `export`, `env`, `nohup`, `setsid`, `exec`, `time`, `stdbuf`,
`numactl`, `taskset`, `srun`, `uv run`, `poetry run`, `sudo`, `tmux new-session`, `screen`, `bash -c`, `ssh HOST`,
`docker run` / `podman run`, `conda run`, `cd DIR &&`, `source VENV/bin/activate`, redirections. What does not fit a
profile is said in `notes`, not dropped in silence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from specconsole.core.launching.flag_pairs import pair_up, typed
from specconsole.core.launching.shell_words import ShellSyntaxError, ShellWord, assignment, split_words
from specconsole.errors import BadInputError

# Wrapper -> how many of its own arguments stand before the command (options are skipped by their dashes).
_WRAPPERS: Mapping[str, int] = {
    "nohup": 0, "setsid": 0, "exec": 0, "time": 0, "command": 0, "stdbuf": 0, "sudo": 0, "numactl": 0, "nice": 0,
    "ionice": 0, "srun": 0, "unbuffer": 0, "caffeinate": 0, "timeout": 1, "taskset": 1, "chrt": 1,
}  # fmt: skip
_WRAPPER_VALUE_OPTIONS: Mapping[str, frozenset[str]] = {
    "nice": frozenset({"-n"}),
    "stdbuf": frozenset({"-o", "-e", "-i"}),
    "sudo": frozenset({"-u", "-g"}),
    "numactl": frozenset({"-N", "-m", "-C", "--cpunodebind", "--membind"}),
    "srun": frozenset({"-N", "-n", "-p", "-c", "-w", "-J", "--mpi", "--nodes", "--ntasks", "--partition", "--gres"}),
    "ionice": frozenset({"-c", "-n"}),
    "timeout": frozenset({"-s", "-k"}),
}
_DOCKER_VALUE_OPTIONS = frozenset(
    {
        "-e", "--env", "-v", "--volume", "-p", "--publish", "--name", "--shm-size", "--network", "--net", "--ipc",
        "--gpus", "-w", "--workdir", "-u", "--user", "--entrypoint", "--ulimit", "--cap-add", "--device", "--mount",
        "--runtime", "--env-file", "-m", "--memory", "--cpus", "--hostname", "-h", "--restart", "--label", "-l",
        "--security-opt", "--pid", "--platform", "--add-host", "--log-driver", "--log-opt", "--group-add",
        "--cpuset-cpus", "--tmpfs",
    }
)  # fmt: skip

_SECRET = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD)$|^HF_TOKEN$|API_KEY")
_MODULES = {
    "sglang.launch_server": "sglang",
    "vllm.entrypoints.openai.api_server": "vllm",
    "vllm.entrypoints.api_server": "vllm",
    "vllm.entrypoints.cli.main": "vllm",
    "specconsole.demo.llama_server": "llamacpp",
}
_LLAMA = re.compile(r"(?:^|/)(?:llama-server(?:-[a-z]+)?|server)$")


@dataclass(slots=True)
class ImportedCommand:
    """What a pasted command says, in a profile's words."""

    engine: str = "other"
    argv: tuple[str, ...] = ()
    """The server's own argument list, as the shell would hand it over."""
    command: tuple[str, ...] = ()
    """What is run, before the flags."""
    args: dict[str, Any] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    """Variables whose name says that they are secret: taken from the console's own environment, never copied."""
    model: str | None = None
    draft_model: str | None = None
    port: int | None = None
    bind: str | None = None
    host: str | None = None
    environment: str | None = None
    working_dir: str | None = None
    log_path: str | None = None
    image: str | None = None
    notes: list[str] = field(default_factory=list)


def import_command(text: str) -> ImportedCommand:
    """Raises BadInputError when no server command is found in the text."""
    found = ImportedCommand()
    try:
        _read_script(text, found, {})
    except ShellSyntaxError as error:
        raise BadInputError(str(error), where="pasted command", try_="paste the whole command") from None
    if not found.argv:
        raise BadInputError(
            "no server command in it", where="pasted command", try_="a line with sglang, vllm or llama-server"
        )
    _name_settings(found)
    return found


def _read_script(text: str, found: ImportedCommand, variables: dict[str, str]) -> None:
    """Command by command; earlier assignments are known to later ones."""
    position = 0
    while True:
        words, unresolved = split_words(text, variables)
        commands = _commands(words)
        if position >= len(commands):
            return
        before = dict(variables)
        _read_command(commands[position], found, variables)
        position += 1
        if found.argv:
            found.notes.extend(f"{expression} is taken as it stands" for expression in dict.fromkeys(unresolved))
            return
        if variables == before:
            continue


def _commands(words: Sequence[ShellWord]) -> list[list[ShellWord]]:
    """Split at control operators; redirections are kept in their command."""
    commands: list[list[ShellWord]] = [[]]
    for word in words:
        if word.operator and word.text in (";", "&", "&&", "||", "|", "|&"):
            if commands[-1]:
                commands.append([])
        else:
            commands[-1].append(word)
    return [command for command in commands if command]


def _read_command(words: list[ShellWord], found: ImportedCommand, variables: dict[str, str]) -> None:
    words = _take_redirections(words, found)
    env: dict[str, str] = {}
    while words and (pair := assignment(words[0])) is not None:
        env[pair[0]] = pair[1]
        words = words[1:]
    if not words:
        variables.update(env)
        return
    name = words[0].text
    if name in ("export", "declare", "typeset", "set"):
        for word in words[1:]:
            if (pair := assignment(word)) is not None:
                variables[pair[0]] = pair[1]
                _put_env(found, *pair)
        return
    if name == "cd" and len(words) > 1:
        found.working_dir = words[1].text
        return
    if name in ("source", ".") and len(words) > 1 and words[1].text.endswith("/bin/activate"):
        found.environment = words[1].text.removesuffix("/bin/activate")
        return
    _unwrap([word.text for word in words], env, found, variables)


def _take_redirections(words: list[ShellWord], found: ImportedCommand) -> list[ShellWord]:
    kept: list[ShellWord] = []
    index = 0
    while index < len(words):
        word = words[index]
        if not word.operator:
            kept.append(word)
            index += 1
            continue
        bare = word.text.lstrip("0123456789")
        if bare.startswith(">&") and len(bare) > 2:
            index += 1
            continue
        target = words[index + 1].text if index + 1 < len(words) else ""
        if bare.startswith((">", "&>")) and target and not word.text.startswith("2"):
            found.log_path = target
        index += 2
    return kept


def _unwrap(words: list[str], env: dict[str, str], found: ImportedCommand, variables: dict[str, str]) -> None:
    while words:
        name = words[0].rsplit("/", 1)[-1]
        if name == "env":
            words = _after_env(words[1:], env)
        elif name in _WRAPPERS:
            words = _after_options(words[1:], _WRAPPER_VALUE_OPTIONS.get(name, frozenset()))[_WRAPPERS[name] :]
            if name in ("srun", "numactl", "taskset", "sudo", "timeout"):
                found.notes.append(f"`{name}` is left out: a profile's `command` may start with it")
        elif name in ("uv", "poetry", "pipenv", "pdm", "conda", "mamba") and words[1:2] == ["run"]:
            words = _after_options(words[2:], frozenset({"-n", "--name", "-p", "--prefix", "--with", "--python"}))
        elif name in ("docker", "podman", "nerdctl") and "run" in words[1:3]:
            words = _after_docker(words[words.index("run") + 1 :], env, found)
        elif name in ("bash", "sh", "zsh", "dash") and any(re.fullmatch(r"-[a-z]*c", w) for w in words[1:3]):
            at = next(i for i, w in enumerate(words) if re.fullmatch(r"-[a-z]*c", w))
            for key, value in env.items():
                _put_env(found, key, value)
            _read_script(words[at + 1] if at + 1 < len(words) else "", found, variables)
            return
        elif name in ("tmux", "screen", "ssh"):
            _into_session(name, words[1:], found, env, variables)
            return
        else:
            break
    if not words or not _is_server(words):
        return
    for key, value in env.items():
        _put_env(found, key, value)
    found.argv = tuple(words)


def _after_env(words: list[str], env: dict[str, str]) -> list[str]:
    while words:
        if words[0] in ("-u", "--unset") and len(words) > 1:
            words = words[2:]
        elif words[0].startswith("-"):
            words = words[1:]
        elif (pair := assignment(ShellWord(words[0]))) is not None:
            env[pair[0]] = pair[1]
            words = words[1:]
        else:
            break
    return words


def _after_options(words: list[str], with_value: frozenset[str]) -> list[str]:
    while words and words[0].startswith("-"):
        if words[0] == "--":
            return words[1:]
        words = words[2 if words[0] in with_value else 1 :]
    return words


def _after_docker(words: list[str], env: dict[str, str], found: ImportedCommand) -> list[str]:
    entry: list[str] = []
    while words and words[0].startswith("-"):
        option, sign, value = words[0].partition("=")
        takes = option in _DOCKER_VALUE_OPTIONS
        if takes and not sign:
            value = words[1] if len(words) > 1 else ""
        words = words[2 if takes and not sign else 1 :]
        if option in ("-e", "--env"):
            name, equals, content = value.partition("=")
            if equals:
                env[name] = content
            else:
                found.secrets[name] = f"env:{name}"
        elif option in ("-p", "--publish"):
            found.notes.append(f"port mapping {value}: the server's own --port is used")
        elif option in ("-v", "--volume", "--mount"):
            found.notes.append(f"volume {value}: paths are those inside the container")
        elif option == "--entrypoint":
            entry = [value]
    if not words:
        return []
    found.image = words[0]
    found.notes.append(f"container image {found.image}: a profile runs the command on the host itself")
    rest = entry + words[1:]
    # Images whose entry point is the server take its flags straight away.
    if rest and rest[0].startswith("-"):
        if "vllm" in found.image:
            return ["vllm", "serve", *rest]
        if "sglang" in found.image:
            return ["python3", "-m", "sglang.launch_server", *rest]
        if "llama" in found.image:
            return ["llama-server", *rest]
    return rest


def _into_session(
    name: str, words: list[str], found: ImportedCommand, env: dict[str, str], variables: dict[str, str]
) -> None:
    """`tmux new-session -d -s x 'command'`, `screen -dmS x command`, `ssh host 'command'`: the command inside."""
    if name == "ssh":
        words = _after_options(words, frozenset({"-p", "-i", "-l", "-o", "-J", "-F"}))
        if words:
            found.host = words[0]
            words = words[1:]
    elif name == "tmux":
        while words and not words[0].startswith("-"):
            words = words[1:]
            break
        if "send-keys" in words:
            words = words[words.index("send-keys") + 1 :]
        words = _after_options(words, frozenset({"-s", "-n", "-t", "-c", "-x", "-y"}))
        words = [w for w in words if w not in ("C-m", "Enter")]
    else:
        rest = _after_options(words, frozenset({"-S", "-t", "-L", "-dmS", "-Sdm", "-h"}))
        words = rest
    for key, value in env.items():
        _put_env(found, key, value)
    if len(words) == 1:
        _read_script(words[0], found, variables)
    elif words:
        # ssh joins its words with blanks and lets the far shell read them; tmux and screen run them as they are.
        if name == "ssh":
            _read_script(" ".join(words), found, variables)
        else:
            _unwrap(words, {}, found, variables)


def _is_server(words: Sequence[str]) -> bool:
    return engine_of(words) != "other"


def engine_of(argv: Sequence[str]) -> str:
    """The engine that an argument list starts; `other` when it is none that is known."""
    if not argv:
        return "other"
    name = argv[0].rsplit("/", 1)[-1]
    if name == "vllm" or (name == "sglang" and argv[1:2] == ["serve"]):
        return name
    if name in ("sglang",):
        return "sglang"
    if _LLAMA.search(argv[0]):
        return "llamacpp"
    if re.fullmatch(r"python[0-9.]*", name):
        for index, word in enumerate(argv[1:], 1):
            if word == "-m" and index + 1 < len(argv):
                return _MODULES.get(argv[index + 1], "other")
            if not word.startswith("-"):
                break
    return "other"


def _put_env(found: ImportedCommand, name: str, value: str) -> None:
    if _SECRET.search(name):
        found.secrets[name] = f"env:{name}"
        found.notes.append(f"{name} looks like a secret: its value is not copied, it is read from your environment")
    else:
        found.env[name] = value


def _command_length(argv: Sequence[str], engine: str) -> int:
    """How many words come before the flags."""
    for index, word in enumerate(argv):
        if word == "-m":
            return index + 2
    if engine in ("vllm", "sglang"):
        return 2 if len(argv) > 1 and argv[1] == "serve" else 1
    return 1


_MODEL_FLAGS = {"sglang": ("model", "model-path"), "vllm": ("model",), "llamacpp": ("m", "model")}
_DRAFT_FLAGS = {
    "sglang": ("speculative-draft-model-path", "speculative-draft-model"),
    "llamacpp": ("md", "model-draft", "spec-draft-model"),
}


def _name_settings(found: ImportedCommand) -> None:
    """Splits the argument list into the profile's fields; what is repeated or positional is kept in order."""
    found.engine = engine_of(found.argv)
    length = _command_length(found.argv, found.engine)
    found.command = found.argv[:length]
    rest = list(found.argv[length:])
    if found.engine == "vllm" and rest and not rest[0].startswith("-"):
        found.model = rest.pop(0)
    for name, values in pair_up(rest):
        value: Any = True if not values else values[0] if len(values) == 1 else list(values)
        value = typed(value)
        if name in _MODEL_FLAGS.get(found.engine, ()) and isinstance(value, str):
            found.model = value
        elif name in _DRAFT_FLAGS.get(found.engine, ()) and isinstance(value, str):
            found.draft_model = value
        elif name in ("port",) and isinstance(value, int):
            found.port = value
        elif name == "host" and isinstance(value, str):
            found.bind = value
        elif name in ("api-key", "admin-api-key"):
            found.notes.append(f"--{name} would show in `ps`: not copied; give it under [secrets]")
        else:
            key = name.replace("-", "_") if len(name) > 1 else name
            if key in found.args:
                old = found.args[key]
                value = [*(old if isinstance(old, list) else [old]), *(value if isinstance(value, list) else [value])]
            found.args[key] = value
