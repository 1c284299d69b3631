"""`--read-only` and `read_only = true`: what changes something is refused and hidden. Witness: files, /proc, --help."""

from __future__ import annotations

from pathlib import Path

import pytest

from specconsole.cli.main import verb_names
from specconsole.cli.read_only import VERBS, hidden
from tests.cli.console import Verbs, write_profile
from tests.support.fixtures_processes import StartVictim
from tests.support.victims import victim_argv
from tests.support.waiting import is_alive

CHANGES = [
    ("attach", "--pid", "1"),
    ("attach", "--log", "/tmp/x.log"),
    ("bench", "http://127.0.0.1:1"),
    ("check", "PROFILE", "--write-config-copy", "/tmp/x"),
    ("demo",),
    ("evict", "PID", "--confirm", "PID"),
    ("hosts", "add", "x"),
    ("hosts", "rm", "x"),
    ("hosts", "trust", "x"),
    ("launch", "PROFILE"),
    ("launch", "PROFILE", "--when-free"),
    ("note", "last", "text"),
    ("note", "last", "--tag", "best"),
    ("profiles", "new", "mine", "--engine", "vllm"),
    ("profiles", "import", "vllm serve /m", "--name", "mine"),
    ("profiles", "adaptive", "PROFILE", "--from", "x", "--save", "mine"),
    ("relaunch", "last"),
    ("results", "import", "x.json"),
    ("results", "note", "x", "y"),
    ("results", "rm", "x", "--yes"),
    ("stop", "--all"),
]
LOOKS = [
    ("status",), ("gpus",), ("holders", "--port", "1"), ("hosts", "list"), ("history",), ("profiles", "list"),
    ("profiles", "import", "vllm serve /m"), ("launch", "PROFILE", "--dry-run"), ("attach",), ("results",),
]  # fmt: skip


@pytest.fixture
def verbs(capsys: pytest.CaptureFixture[str]) -> Verbs:
    return Verbs(capsys)


def files_of(home: Path) -> dict[str, bytes]:
    """Everything that a person keeps: not the console's own caches."""
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in home.rglob("*")
        if path.is_file() and not any(part in ("flags", "spool", "store.sqlite", "locks") for part in path.parts)
        and not path.name.startswith(("store.sqlite", "client-id"))
    }  # fmt: skip


def test_every_verb_is_judged() -> None:
    assert set(VERBS) == set(verb_names())
    asked = {words[0] for words in CHANGES}
    assert asked == {name for name, rule in VERBS.items() if rule.changes != "never"}
    for name, rule in VERBS.items():
        tried = {words[1] for words in CHANGES if words[0] == name and len(words) > 1}
        assert set(rule.words) <= tried, name


@pytest.mark.parametrize("words", CHANGES, ids=lambda words: " ".join(words[:2]))
def test_what_changes_something_is_refused_and_changes_nothing(
    words: tuple[str, ...], verbs: Verbs, isolated_home: Path, tmp_path: Path, start_victim: StartVictim
) -> None:
    profile = write_profile(tmp_path, "p", victim_argv())
    victim = start_victim("--port", "0") if "PID" in words else None
    filled = [{"PROFILE": str(profile), "PID": str(victim.pid if victim else 0)}.get(word, word) for word in words]
    before = files_of(isolated_home)
    done = verbs("--read-only", *filled)
    assert (done.status, "read-only" in done.err) == (5, True), done
    assert files_of(isolated_home) == before
    assert victim is None or is_alive(victim.pid)


def test_what_looks_still_works(verbs: Verbs, tmp_path: Path) -> None:
    profile = write_profile(tmp_path, "p", victim_argv())
    for words in LOOKS:
        done = verbs("--read-only", *(str(profile) if word == "PROFILE" else word for word in words))
        assert "read-only" not in done.err, (words, done)
        assert done.status == 0, (words, done)


def test_help_shows_only_what_looks(verbs: Verbs) -> None:
    whole, trimmed = verbs("--help").out, verbs("--read-only", "--help").out
    for name in verb_names():
        line = f"\n    {name} "
        assert line in whole
        assert (line in trimmed) is not hidden(name), name
    assert hidden("stop")
    assert not hidden("launch")  # --dry-run looks
    hosts = verbs("--read-only", "hosts", "--help").out
    assert "\n    check " in hosts
    for word in ("add", "rm", "trust"):
        assert f"\n    {word} " in verbs("hosts", "--help").out
        assert f"\n    {word} " not in hosts
    assert "--write-config-copy" not in verbs("--read-only", "check", "--help").out.split("options:")[1]


@pytest.mark.parametrize("name", ["gpu-x", "root@192.0.2.1:2222"])
def test_a_kept_host_is_refused_before_it_is_reached(
    name: str, verbs: Verbs, isolated_home: Path, tmp_path: Path
) -> None:
    folder = isolated_home / ".config" / "specconsole"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hosts.toml").write_text('[hosts.gpu-x]\nssh = "root@192.0.2.1:2222"\nread_only = true\n')
    done = verbs("launch", str(write_profile(tmp_path, "p", victim_argv())), "--host", name)
    assert (done.status, f"{name} is read-only (hosts.toml)" in done.err) == (5, True), done


def test_a_host_of_its_own_is_kept(verbs: Verbs, isolated_home: Path, tmp_path: Path) -> None:
    profile = write_profile(tmp_path, "p", victim_argv())
    launch_id = verbs("launch", str(profile)).out.strip()
    folder = isolated_home / ".config" / "specconsole"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hosts.toml").write_text("[hosts.local]\nread_only = true\n")
    [running] = verbs("status", "--json").json
    for words in (
        ("launch", str(profile)), ("launch", str(profile), "--when-free"), ("stop", launch_id),
        ("attach", "--pid", str(running["processes"][0][0])),
    ):  # fmt: skip
        done = verbs(*words)
        assert (done.status, "local is read-only (hosts.toml)" in done.err) == (5, True), (words, done)
    assert verbs("status").status == 0
    [still] = verbs("status", "--json").json
    assert still["processes"] == running["processes"]
    (folder / "hosts.toml").unlink()
    assert verbs("stop", launch_id).status == 0
