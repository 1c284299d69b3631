"""A simulated nvidia-smi on PATH; it says so in every name that it prints."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass
class FakeGpus:
    """The tool's world; `set` changes it for the next round of a running stream too."""

    folder: Path

    @property
    def tool(self) -> Path:
        return self.folder / "bin" / "nvidia-smi"

    def set(self, **state: Any) -> None:
        waiting = self.folder / "state.new"
        waiting.write_text(json.dumps(state))
        waiting.replace(self.folder / "state.json")

    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def fake_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGpus:
    folder = tmp_path / "fake-nvidia-smi"
    (folder / "bin").mkdir(parents=True)
    tool = folder / "bin" / "nvidia-smi"
    source = Path(__file__).with_name("fake_nvidia_smi.py")
    # Its world is named in the script itself: over SSH our environment does not arrive.
    tool.write_text(
        f'#!/bin/sh\nexport FAKE_NVIDIA_SMI="{folder}" FAKE_NVIDIA_SMI_EVERY_S=0.05\n'
        f'exec "{sys.executable}" -S "{source}" "$@"\n'
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    gpus = FakeGpus(folder)
    gpus.set(gpus=[{"index": index} for index in range(2)])
    return gpus
