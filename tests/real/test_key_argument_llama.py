"""A key for a real llama.cpp server, as an argument or a variable. Witness: /proc/PID/cmdline, the server's 401."""

from __future__ import annotations

import http.client
import json
import sys
from pathlib import Path

import pytest

from specconsole.demo.models import ModelFiles
from tests.cli.console import Verbs, write_profile
from tests.support.llama import MODULE

KEY = "planted-server-key-0123456789"
# Two real starts: the quick proof is tests/contracts/test_launcher_key_argument.py.
pytestmark = [pytest.mark.real, pytest.mark.engines, pytest.mark.timeout(180)]


def status_without_key(port: int) -> int:
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        link.request("POST", "/completion", json.dumps({"prompt": "a", "n_predict": 1}))
        return link.getresponse().status
    finally:
        link.close()


def test_an_argument_needs_a_word_and_a_variable_does_not(
    llama_models: ModelFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    verbs = Verbs(capsys)
    monkeypatch.setenv("PLANTED", KEY)
    command = [sys.executable, "-m", MODULE]
    seen = write_profile(tmp_path, "seen", command, engine="llamacpp", model=str(llama_models.target),
                         args={"api_key": "${secret:SERVER_KEY}"}, secrets={"SERVER_KEY": "env:PLANTED"})  # fmt: skip
    unseen = write_profile(tmp_path, "unseen", command, engine="llamacpp", model=str(llama_models.target),
                           secrets={"LLAMA_API_KEY": "env:PLANTED"})  # fmt: skip
    refused = verbs("launch", str(seen))
    assert (refused.status, "every user of the host sees" in refused.err, "LLAMA_API_KEY" in refused.err) == (
        5,
        True,
        True,
    )
    [finding, *_] = verbs("check", str(seen), "--json").json["findings"]
    assert (finding["name"], finding["severity"]) == ("key-argument", "stop")
    assert verbs("status", "--all").out == "no launches here\n"
    for words, shown in ((["launch", str(seen), "--allow-key-argument"], True), (["launch", str(unseen)], False)):
        done = verbs(*words, "--wait", "--json")
        assert done.out, done.err
        [view] = done.json
        assert (done.status, view["state"]) == (0, "answers"), done.err  # it was asked with its key
        pid = view["processes"][0][0]
        assert (KEY.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()) is shown
        assert status_without_key(view["port"]) == 401
        assert KEY not in done.out
        assert KEY not in verbs("status", "--json").out
        folder = Path(view["log_path"]).parent
        assert [path.name for path in folder.iterdir() if KEY.encode() in path.read_bytes()] == []
        assert verbs("stop", view["launch_id"]).status == 0
