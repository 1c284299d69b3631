"""Two people with consoles of their own on one host over SSH: notes, tags, comparing and relaunching, the link down."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.console import write_profile
from tests.end_to_end.test_over_ssh import Person
from tests.support.fault_proxy import FaultProxy, fault_proxy
from tests.support.sshd_lab import SshdLab
from tests.support.victims import victim_argv

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]


@pytest.fixture
async def link(sshd: SshdLab) -> AsyncIterator[FaultProxy]:
    async with fault_proxy(sshd.port) as proxy:
        yield proxy


async def launched(person: Person, path: Path, *words: str) -> dict[str, Any]:
    status, out, err = await person.does("launch", str(path), "--host", "gpu", "--json", *words)
    assert status == 0, err
    found: dict[str, Any] = json.loads(out)[0]
    return found


async def status_of(person: Person) -> dict[str, Any]:
    return {one["launch_id"]: one for one in await person.launches()}


def written(launch: dict[str, Any]) -> list[str]:
    """The texts in the launch's folder, as the files say."""
    files = sorted((Path(launch["log_path"]).parent / "notes").glob("*.json"))
    return [json.loads(file.read_text())["text"] for file in files]


async def test_two_people_and_a_link_that_breaks(link: FaultProxy, sshd: SshdLab, tmp_path: Path) -> None:
    ada, bob = Person(tmp_path / "ada", link, sshd), Person(tmp_path / "bob", link, sshd)
    one = await launched(ada, write_profile(tmp_path, "one", victim_argv(), tags=["chain"], env={"LANE": "1"}))
    try:
        status, out, err = await ada.does("note", "one", "warm", "GPU", "--tag", "best", "--json")
        assert (status, json.loads(out)["on_host"]) == (0, True), err
        assert written(one) == ["warm GPU", "best"]

        # Another console of the account finds them from the host alone, and adds its own.
        seen = (await status_of(bob))[one["launch_id"]]
        assert ([note["text"] for note in seen["notes"]], seen["tags"]) == (["warm GPU"], ["chain", "best"])
        status, _, err = await bob.does("note", one["launch_id"][:-2], "the draft is stale", "--untag", "best")
        assert status == 0, err
        seen = (await status_of(ada))[one["launch_id"]]
        assert [note["text"] for note in seen["notes"]] == ["warm GPU", "the draft is stale"]
        assert seen["tags"] == ["chain"]

        # The link is down: kept here, said so, and sent with the next look.
        await link.refuse()
        link.cut()
        status, _, err = await ada.does("note", "one", "written in a tunnel")
        assert status == 0
        assert f"kept: {one['launch_id']}" in err
        assert "the launch's folder has it not yet" in err
        assert len(written(one)) == 4
        status, out, err = await ada.does("history", "tunnel", "--json")
        assert (status, json.loads(out)["launches"][0]["host"]) == (0, "gpu")
        status, _, err = await ada.does("relaunch", "one")
        assert status == 3
        assert "gpu" in err
        await link.listen_again()
        await status_of(ada)
        assert written(one)[-1] == "written in a tunnel"

        # A comparison with the link up and without it says the same flags.
        two = await launched(bob, write_profile(tmp_path, "two", [*victim_argv(), "--children-ignore-term"]))
        status, _, err = await bob.does("stop", two["launch_id"], "--host", "gpu")
        assert status == 0, err
        expected = {"--children-ignore-term": (None, True)}
        for words in ((), ("--offline",)):
            status, out, err = await bob.does(
                "diff", one["launch_id"], two["launch_id"], "--host", "gpu", "--json", *words
            )
            assert status == 1, err
            rows = [row for row in json.loads(out)["rows"] if row["section"] == "flags" and row["differs"]]
            assert {row["key"]: (row["left"], row["right"]) for row in rows} == expected
            assert any("was not asked" in note for note in json.loads(out)["notes"]) is bool(words)
        status, out, err = await bob.does("history", "--refresh", "--host", "gpu", "--json")
        assert status == 0, err
        states = {row["launch_id"]: (row["state"], row["outcome"]) for row in json.loads(out)["launches"]}
        assert states == {one["launch_id"]: ("runs", None), two["launch_id"]: (None, "stopped")}
    finally:
        status, _, err = await ada.does("stop", one["launch_id"], "--host", "gpu")
        assert status == 0, err
