"""A pasted launch command -> profile settings: `NCCL_ALGO=Tree nohup python -m sglang.launch_server ... > log 2>&1 &`.

Knows what people put around a server: variable prefixes, `export`, `env`, `nohup`, `setsid`, `exec`, `time`, `stdbuf`,
`numactl`, `taskset`, `srun`, `uv run`, `poetry run`, `sudo`, `tmux new-session`, `screen`, `bash -c`, `ssh HOST`,
`docker run` / `podman run`, `conda run`, `cd DIR &&`, `source VENV/bin/activate`, redirections. What does not fit a
profile is said in `notes`, not dropped in silence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from specconsole.core.launching.import_wrappers import (
    WRAPPERS,
    Around,
    after_docker,
    after_env,
    after_options,
    after_wrapper,
    container_words,
    shell_script,
)
from specconsole.core.launching.imported_command import ImportedCommand, engine_of, name_settings
from specconsole.core.launching.shell_words import ShellSyntaxError, ShellWord, assignment, split_words
from specconsole.errors import BadInputError

_MOST = 256 * 1024
"""Characters of a pasted text that are still read."""
_DEEPEST = 8
_RESERVED = ("{", "}", "do", "done", "then", "else", "elif", "fi", "if", "while", "until", "!")
_RUN_OPTIONS = frozenset({"-n", "--name", "-p", "--prefix", "--with", "--python", "--project", "--directory", "-e",
                          "--extra", "--group", "--env-file"})  # fmt: skip
_SSH_OPTIONS = frozenset({"-p", "-i", "-l", "-o", "-J", "-F", "-L", "-R", "-D", "-b", "-c", "-E", "-W"})
_NOT_RUNNERS = frozenset({
    "pip", "pip3", "uv", "apt", "apt-get", "echo", "printf", "cat", "grep", "ls", "kill", "pkill", "which", "git",
    "tail", "ps", "rm", "curl", "wget", "head", "less", "vim", "nano", "man", "type", "alias", "test", "[", "[[",
    "for", "case",
})  # fmt: skip
_SECRET = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD)$|^HF_TOKEN$|API_KEY")


def import_command(text: str) -> ImportedCommand:
    """Raises BadInputError when no server command is found in the text."""
    if len(text) > _MOST:
        raise BadInputError(
            f"{len(text):,} characters are no launch command", where="pasted command", try_="the lines that start it"
        )
    found = ImportedCommand()
    try:
        _Reader(found).script(text)
    except (ShellSyntaxError, RecursionError) as error:
        why = str(error) if isinstance(error, ShellSyntaxError) else "brackets in brackets without end"
        raise BadInputError(why, where="pasted command", try_="paste the whole command") from None
    if not found.argv:
        raise BadInputError(
            "no server command in it", where="pasted command", try_="a line with sglang, vllm or llama-server"
        )
    if any("\0" in word for word in found.argv):
        raise BadInputError("a NUL byte can't be part of an argument", where="pasted command")
    name_settings(found)
    return found


class _Reader:
    """Reads a script command by command until one starts a server; what came before it is known to it."""

    def __init__(self, found: ImportedCommand) -> None:
        self.found = found
        self.variables: dict[str, str] = {}
        self.arrays: dict[str, list[str]] = {}
        self.exports_all = False
        """`set -a`: plain assignments reach the server too."""
        self.depth = 0

    def script(self, text: str) -> None:
        if self.depth > _DEEPEST:
            raise ShellSyntaxError("shells in shells without end")
        self.depth += 1
        position, known = 0, -1
        commands: list[list[ShellWord]] = []
        unresolved: list[str] = []
        while True:
            # Read again only where an assignment may have changed what comes.
            state = hash((tuple(self.variables.items()), tuple((k, tuple(v)) for k, v in self.arrays.items())))
            if state != known:
                words, unresolved = split_words(text, self.variables, self.arrays)
                commands, known = _commands(words), state
            if position >= len(commands):
                break
            self.command(commands[position])
            position += 1
            if self.found.argv:
                self.found.notes.extend(f"{one} is taken as it stands" for one in dict.fromkeys(unresolved))
                break
        self.depth -= 1

    def command(self, words: list[ShellWord]) -> None:
        words, document = _take_redirections(words, self.found)
        # `while true; do ...`, `if ...; then ...`, `{ ...; }`: what is run stands behind the word.
        while words and not words[0].quoted and words[0].text in _RESERVED:
            words = words[1:]
        around = Around()
        while words and (words[0].array is not None or assignment(words[0]) is not None):
            self.assign(words[0], around)
            words = words[1:]
        if not words:
            self.variables.update(around.env)
            for name, value in around.env.items():
                # What is exported already stays so.
                if self.exports_all or name in self.found.env:
                    _put_env(self.found, name, value)
            return
        name = words[0].text
        if name in ("export", "declare", "typeset", "readonly", "local", "set"):
            self.declare(name, words[1:])
        elif name == "unset":
            for word in words[1:]:
                self.variables.pop(word.text, None)
                self.found.env.pop(word.text, None)
                self.found.secrets.pop(word.text, None)
        elif name in ("cd", "pushd") and len(words) > 1:
            self.go([word.text for word in words[1:]])
        elif name in ("source", ".") and len(words) > 1 and words[1].text.endswith("/bin/activate"):
            self.found.environment = words[1].text.removesuffix("/bin/activate")
        elif name == "conda" and [word.text for word in words[1:2]] == ["activate"] and len(words) > 2:
            self.found.notes.append(f"conda environment {words[2].text}: give its folder as `environment`")
        else:
            self.unwrap([word.text for word in words], around, document)

    def assign(self, word: ShellWord, around: Around) -> None:
        name, plus, value = word.text.partition("+=") if word.array is not None else word.text.partition("=")
        if word.array is not None:
            name = name.removesuffix("=")
            self.arrays[name] = [*(self.arrays.get(name, []) if plus else []), *word.array]
        else:
            around.env[name] = value

    def declare(self, name: str, words: list[ShellWord]) -> None:
        if name == "set":
            self.exports_all = any(w.text in ("-a", "-o allexport") for w in words) or (
                self.exports_all and not any(word.text == "+a" for word in words)
            )
            return
        exports = name == "export" or any(re.fullmatch(r"-[a-z]*x[a-z]*", word.text) for word in words)
        for word in words:
            if word.array is not None:
                self.assign(word, Around())
            elif (pair := assignment(word)) is not None:
                self.variables[pair[0]] = pair[1]
                if exports or self.exports_all:
                    _put_env(self.found, *pair)
            elif exports and word.text in self.variables:
                _put_env(self.found, word.text, self.variables[word.text])

    def go(self, words: list[str]) -> None:
        words = after_options(words)
        if not words:
            return
        target, before = words[0], self.found.working_dir
        relative = not target.startswith(("/", "~", "$"))
        self.found.working_dir = f"{before.rstrip('/')}/{target}" if relative and before else target

    # ---------------------------------------------------------------- what stands around the server

    def unwrap(self, words: list[str], around: Around, document: str | None) -> None:
        while words:
            name = words[0].rsplit("/", 1)[-1]
            if name == "env":
                words = after_env(words[1:], around)
            elif name in WRAPPERS:
                words = after_wrapper(name, words[1:], around)
            elif name in ("uv", "poetry", "pipenv", "pdm", "conda", "mamba", "pixi") and words[1:2] == ["run"]:
                words = after_options(words[2:], _RUN_OPTIONS)
            elif name in ("docker", "podman", "nerdctl", "docker-compose"):
                inside = container_words(words)
                if inside is None:
                    return
                words = after_docker(inside, around)
            elif name in ("bash", "sh", "zsh", "dash", "ksh"):
                text = shell_script(words[1:])
                text = document if text is None else text
                self.keep(around)
                if text is not None:
                    self.script(text)
                return
            elif name in ("tmux", "screen", "ssh", "eval", "watch"):
                self.keep(around)
                self.session(name, words[1:], document)
                return
            elif engine_of(words) != "other":
                break
            else:
                # A profiler, or anything else that runs a program: what is plainly a server behind it.
                inner = _server_behind(words)
                if inner is None:
                    return
                around.notes.append(f"`{words[0]}` and what follows it are left out: the server behind them is taken")
                words = inner
        if not words:
            return
        self.keep(around)
        self.found.argv = tuple(words)

    def keep(self, around: Around) -> None:
        """What wrappers said, on top of what was exported before."""
        found = self.found
        if around.cleared:
            found.env.clear()
            found.secrets.clear()
        for name in around.unset:
            found.env.pop(name, None)
            found.secrets.pop(name, None)
        for name, value in around.env.items():
            _put_env(found, name, value)
        found.secrets.update(around.secrets)
        found.image = around.image or found.image
        found.working_dir = around.working_dir or found.working_dir
        found.notes += around.notes

    def session(self, name: str, words: list[str], document: str | None) -> None:
        """`tmux new -d 'command'`, `screen -dmS x command`, `ssh host 'command'`, `eval ...`: the command inside."""
        if name == "ssh":
            words = after_options(words, _SSH_OPTIONS)
            if not words:
                return
            self.found.host, words = words[0], words[1:]
        elif name == "tmux":
            words = after_options(words, frozenset({"-L", "-S", "-f"}))[1:]
            if "send-keys" in words:
                words = words[words.index("send-keys") + 1 :]
            words = after_options(words, frozenset({"-s", "-n", "-t", "-c", "-x", "-y", "-e", "-F"}))
            words = [word for word in words if word not in ("C-m", "Enter")]
        elif name in ("screen", "watch"):
            words = after_options(words, frozenset({"-S", "-t", "-L", "-dmS", "-Sdm", "-h", "-c", "-Logfile", "-n"}))
        if not words and document is not None:
            self.script(document)
        elif len(words) == 1:
            self.script(words[0])
        elif words:
            # ssh and eval join their words with blanks and a shell reads them; tmux and screen run them as they are.
            if name in ("ssh", "eval"):
                self.script(" ".join(words))
            else:
                self.unwrap(words, Around(), None)


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


def _take_redirections(words: list[ShellWord], found: ImportedCommand) -> tuple[list[ShellWord], str | None]:
    """The command's own words, and the here-document that it reads."""
    kept: list[ShellWord] = []
    document: str | None = None
    index = 0
    while index < len(words):
        word = words[index]
        if not word.operator:
            kept.append(word)
            index += 1
            continue
        bare = word.text.lstrip("0123456789")
        if bare.startswith((">&", "<&")) and len(bare) > 2:
            index += 1
            continue
        target = words[index + 1] if index + 1 < len(words) else None
        if target is not None and bare in ("<<", "<<-"):
            document = target.body
        elif target is not None and bare == "<<<":
            document = target.text
        elif target is not None and bare.startswith((">", "&>")) and target.text and not word.text.startswith("2"):
            found.log_path = target.text
        index += 2
    return kept, document


def _server_behind(words: Sequence[str]) -> list[str] | None:
    """The words from the first that plainly begins a server's command; None where none does."""
    if words[0].rsplit("/", 1)[-1] in _NOT_RUNNERS:
        return None
    for index in range(1, len(words)):
        rest = words[index:]
        engine = engine_of(rest)
        # `serve`, a module or a flag must follow: a word alone may be a package's name.
        if engine != "other" and len(rest) > 1 and (rest[1] in ("serve", "-m", "-u") or rest[1].startswith("-")):
            return list(rest)
    return None


def _put_env(found: ImportedCommand, name: str, value: str) -> None:
    if _SECRET.search(name):
        found.secrets[name] = f"env:{name}"
        found.notes.append(f"{name} looks like a secret: its value is not copied, it is read from your environment")
    else:
        found.env[name] = value
