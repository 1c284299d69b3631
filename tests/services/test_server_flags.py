"""A server's flags by its own `--help`: slow, failing, coloured; asked once for each build, and never of a script."""

from __future__ import annotations

import gzip
import time
from dataclasses import replace
from pathlib import Path

import pytest

import specconsole
from specconsole.adapters.flag_store import FlagStore, built_in_catalogue
from specconsole.adapters.local import LocalTransport
from specconsole.core.launching.command import build_spec
from specconsole.core.launching.engine_flags import check_flags
from specconsole.core.launching.engine_settings import ENGINE_FLAGS
from specconsole.core.launching.profile import Profile
from specconsole.services.server_flags import FlagShelf, ServerFlags, read_server_flags

HELP = gzip.decompress((Path(specconsole.__file__).parent / "catalogues" / "llamacpp-b10434.txt.gz").read_bytes())


class Bench:
    """A `llama-server` of the test's own on PATH, made by a shell script that counts how often it is asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = folder / "bin" / "llama-server"
        self.calls = folder / "calls"
        self.store = FlagStore(folder / "flags")
        self.told: list[str] = []
        self.program.parent.mkdir()
        (folder / "help").write_bytes(HELP)

    def write(self, help_: str, *, build: int = 10434) -> None:
        self.program.write_text(
            f'#!/bin/sh\necho "$*" >>{self.calls}\n'
            f'case $1 in --version) echo "version: {build} (abc)" >&2; exit 0 ;; esac\n{help_}\n'
        )
        self.program.chmod(0o755)

    def asked(self) -> int:
        return self.calls.read_text().split().count("--help") if self.calls.exists() else 0

    async def read(self, profile: Profile, limit_s: float = 30.0) -> ServerFlags:
        spec = build_spec(profile, launch_id="x", port=1, owner="", client_id="", now_s=0, version="", python=None)
        transport = LocalTransport()
        try:
            store = self.store
            shelf = FlagShelf(store.read, store.keep, built_in_catalogue, store.slow, store.keep_slow)
            return await read_server_flags(transport, shelf, profile, spec, limit_s=limit_s, told=self.told.append)
        finally:
            await transport.aclose()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def profile(bench: Bench) -> Profile:
    return Profile("p", "llamacpp", command=(str(bench.program),), args={"ctx_size": 1, "ctx_sise": 2})


async def test_it_is_asked_once_for_each_build(bench: Bench, profile: Profile) -> None:
    bench.write(f"cat {bench.folder}/help")
    first = await bench.read(profile)
    assert (first.certain, first.version, bench.asked(), len(bench.told)) == (True, (10434,), 1, 1)
    assert first.catalogue is not None
    assert len(first.catalogue.flags) > 200
    second = await bench.read(profile)
    assert (second.certain, bench.asked(), len(bench.told)) == (True, 1, 1)
    bench.write(f"cat {bench.folder}/help; echo '--brand-new N   a flag'", build=10500)
    third = await bench.read(profile)
    assert (third.version, bench.asked()) == ((10500,), 2)
    assert third.catalogue is not None
    assert third.catalogue.find("brand_new") is not None
    assert {path.stat().st_mode & 0o777 for path in bench.store.folder.iterdir()} == {0o600}
    for path in bench.store.folder.iterdir():
        path.write_bytes(b"damaged")
    await bench.read(profile)
    assert bench.asked() == 3


async def test_colours_and_noise_do_not_matter(bench: Bench, profile: Profile) -> None:
    bench.write(f"echo loading; sed 's/^--*[a-z-]*/\\x1b[36m&\\x1b[0m/' {bench.folder}/help; echo bad >&2")
    read = await bench.read(profile)
    assert read.certain
    assert read.catalogue is not None
    problems = check_flags(ENGINE_FLAGS["llamacpp"], read.catalogue, profile.args, certain=read.certain)
    assert [(one.key, one.level, one.fix) for one in problems] == [("ctx_sise", "error", "--ctx-size")]


@pytest.mark.parametrize(
    ("help_", "says"),
    [
        ("exit 3", "failed (nothing said)"),
        ("echo oh no >&2; exit 1", "failed (oh no)"),
        ("echo hello", "names no flags"),
    ],
)
async def test_one_that_fails_is_said_and_the_built_in_list_serves(
    bench: Bench, profile: Profile, help_: str, says: str
) -> None:
    bench.write(help_, build=9000)
    read = await bench.read(profile)
    assert not read.certain
    assert read.catalogue is not None
    assert [one.severity for one in read.findings if says in one.text] == ["warning"]
    problems = check_flags(ENGINE_FLAGS["llamacpp"], read.catalogue, profile.args, certain=read.certain)
    assert [one.level for one in problems] == ["warning"]


async def test_one_that_takes_a_minute_does_not_hold_up_a_start(bench: Bench, profile: Profile) -> None:
    bench.write("exec sleep 60")
    start_s = time.monotonic()
    read = await bench.read(profile, limit_s=0.5)
    assert time.monotonic() - start_s < 20
    [said] = [one for one in read.findings if "took over 0.5 s" in one.text]
    # Of exactly the version of the built-in list, which is as good as the server's own.
    assert (read.certain, said.severity) == (True, "note")


async def test_one_that_took_too_long_is_not_waited_for_again_soon(bench: Bench, profile: Profile) -> None:
    """A launch waits a little, a check long: what was too slow for the one is asked again for the other, once."""
    bench.write("sleep 1.5; exit 3")
    for limit_s, asked in ((0.5, 1), (0.5, 1), (0.2, 1), (0.7, 2), (0.6, 2)):
        read = await bench.read(profile, limit_s=limit_s)
        assert bench.asked() == asked, limit_s
        assert [one.name for one in read.findings if "took over" in one.text] == ["source"]
    bench.write(f"cat {bench.folder}/help", build=10500)
    assert (await bench.read(profile)).certain, "another build is asked"
    # What fails at once is asked each time: it may be mended meanwhile.
    bench.write("exit 3", build=10501)
    for asked in (4, 5):
        await bench.read(profile)
        assert bench.asked() == asked


async def test_a_script_is_never_asked(bench: Bench, profile: Profile) -> None:
    """What it does with `--help` nobody knows: it may start the server."""
    bench.write(f"touch {bench.folder}/started")
    script = bench.program.rename(bench.program.with_name("serve.sh"))
    read = await bench.read(replace(profile, command=(str(script),)))
    assert not bench.calls.exists()
    assert not (bench.folder / "started").exists()
    assert (read.certain, read.catalogue is not None) == (False, True)


async def test_an_engine_that_can_not_be_imported(bench: Bench) -> None:
    read = await bench.read(Profile("p", "sglang", env={"PYTHONPATH": "/nowhere"}))
    assert [one.check for one in read.findings if one.severity == "stop"] == ["version"]
