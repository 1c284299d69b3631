"""A wheel, installed in a new environment and run from another folder, carries all that it needs."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from specconsole.assets import shipped_files, shipped_folder
from specconsole.errors import SpecconsoleError
from tests.support.leaks import CACHES, REPOSITORY


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that nothing appears in the checkout; with the hatchling of this environment, offline."""
    source = tmp_path_factory.mktemp("source") / "checkout"
    shutil.copytree(REPOSITORY, source, ignore=shutil.ignore_patterns(*CACHES, "tests", ".venv*"))
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(source)],
        check=True, capture_output=True, timeout=100,
    )  # fmt: skip
    [built] = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the wheel in it; the libraries it depends on are lent by this one through a .pth file.

    A .pth file inside a folder that another .pth file adds is not read, so the editable install here stays out.
    """
    folder = tmp_path_factory.mktemp("installed") / "venv"
    venv.create(folder, with_pip=False)
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "--quiet", "--no-index",
         "--no-deps", "--disable-pip-version-check", str(wheel)],
        check=True, capture_output=True, timeout=100,
    )  # fmt: skip
    [site_packages] = folder.glob("lib/python*/site-packages")
    (site_packages / "zz-lent.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    return folder


def test_the_wheel_holds_code_styles_themes_and_profiles_and_no_tests(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {f"specconsole/themes/{name}.toml" for name in shipped_files("themes")} <= set(names)
    assert {f"specconsole/profiles/{name}.toml" for name in shipped_files("profiles")} <= set(names)
    assert shipped_files("themes")
    assert shipped_files("profiles")
    styles = {path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / "specconsole").rglob("*.tcss")}
    assert styles <= set(names)
    assert not [name for name in names if name.startswith("tests") or "__pycache__" in name]


def test_it_runs_from_another_folder(installed: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    bare = {"HOME": os.environ["HOME"], "PATH": "/usr/bin:/bin", "LC_ALL": "C"}

    def run(*argv: str) -> str:
        ended = subprocess.run(argv, cwd=elsewhere, env=bare, capture_output=True, text=True, timeout=60, check=False)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    assert run(str(installed / "bin" / "specconsole"), "--version").startswith("specconsole ")
    assert "verbs" in run(str(installed / "bin" / "specconsole"), "--help")
    python = str(installed / "bin" / "python")
    assert run(python, "-m", "specconsole", "--version").startswith("specconsole ")
    code = (
        "import specconsole, specconsole.assets as a\n"
        "print(specconsole.__file__)\n"
        "for kind in ('themes', 'profiles', 'profiles/workloads'):\n"
        "    print(kind, a.shipped_folder(kind), *a.shipped_files(kind))"
    )
    where, *kinds = run(python, "-c", code).splitlines()
    assert where.startswith(str(installed))
    for line, kind in zip(kinds, ("themes", "profiles", "profiles/workloads"), strict=True):
        assert line.split()[1].startswith(str(installed))
        assert line.split()[2:] == list(shipped_files(kind))  # type: ignore[arg-type]  # the literals just above
    assert os.listdir(elsewhere) == []


def test_a_checkout_has_them_at_its_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert shipped_folder("themes") == REPOSITORY / "themes"
    monkeypatch.setattr("specconsole.assets.__file__", str(tmp_path / "specconsole" / "assets.py"))
    with pytest.raises(SpecconsoleError, match="install it again"):
        shipped_folder("themes")
