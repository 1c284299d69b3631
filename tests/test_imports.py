"""What must not be loaded: the core stays pure, and the command line answers before the heavy libraries are in."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from specconsole.cli.main import verb_names

HEAVY = {
    "textual",
    "asyncssh",
    "httpx",
    "rich",
    "psutil",
    "numpy",
    "gguf",
    "xllamacpp",
    "cryptography",
    "prometheus_client",
}

LOADED = (
    "import json, sys; print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})), file=sys.stderr)"
)


def loaded_by(code: str) -> set[str]:
    """Top-level names of the modules in memory after `code` ran in a fresh interpreter."""
    ended = subprocess.run(
        [sys.executable, "-c", f"{code}\n{LOADED}"], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return set(json.loads(ended.stderr.splitlines()[-1]))


def import_all_of(package: str) -> str:
    return (
        f"import importlib, pkgutil, sys, {package} as package\n"
        f"for module in pkgutil.walk_packages(package.__path__, '{package}.'): importlib.import_module(module.name)\n"
        f"assert sum(name.startswith('{package}.') for name in sys.modules) > 1"
    )


def run_main(*argv: str) -> str:
    return f"from specconsole.cli.main import main\ntry: main({list(argv)!r})\nexcept SystemExit: pass"


def test_the_core_loads_no_third_party_and_no_event_loop() -> None:
    loaded = loaded_by(import_all_of("specconsole.core"))
    third_party = {name for name in loaded if name not in sys.stdlib_module_names} - {"specconsole"}
    # Names that a .pth file of this environment loads into every interpreter are no doing of the core.
    assert third_party - loaded_by("pass") == set()
    assert not loaded & {"asyncio", "sqlite3", "socket", "subprocess"}


@pytest.mark.parametrize(
    "argv", [["--help"], ["--version"], *([verb, "--help"] for verb in verb_names())], ids=" ".join
)
def test_help_loads_nothing_heavy(argv: list[str]) -> None:
    assert not loaded_by(run_main(*argv)) & HEAVY


def test_services_load_neither_a_screen_nor_a_client_library() -> None:
    assert not loaded_by(import_all_of("specconsole.services")) & {"textual", "asyncssh", "httpx", "rich"}
