"""Marked lines of known_hosts and host certificates, against a real sshd; ssh-keygen signs and hashes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from specconsole.adapters.ssh import SshLink
from specconsole.errors import HostKeyChangedError, HostKeyUnknownError
from tests.support.sshd_lab import SshdLab, make_key, sshd_lab


def _public(path: Path) -> str:
    return " ".join(path.with_name(path.name + ".pub").read_text().split()[:2])


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_key(tmp_path_factory.mktemp("authority") / "ca")


@pytest.fixture(scope="module")
def certified(authority: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshdLab]:
    """A host that shows a certificate; its key is made beforehand, so that it can be signed."""
    key = make_key(tmp_path_factory.mktemp("signed") / "host")
    sign = ["ssh-keygen", "-q", "-s", str(authority), "-I", "lab", "-h", "-n", "127.0.0.1", f"{key}.pub"]
    subprocess.run(sign, check=True)
    with sshd_lab(options={"HostKey": str(key), "HostCertificate": f"{key}-cert.pub"}) as lab:
        yield lab


async def _connect(lab: SshdLab, home: Path, known: str) -> None:
    lab.client_config(home, trust=False)
    (home / ".ssh" / "known_hosts").write_text(known)
    link = SshLink("lab")
    try:
        await link.connect()
        assert (await link.run(["echo", "in"])).stdout == b"in\n"
    finally:
        await link.aclose()


async def test_a_certificate_of_a_trusted_authority_is_enough(
    certified: SshdLab, authority: Path, isolated_home: Path
) -> None:
    await _connect(certified, isolated_home, f"@cert-authority * {_public(authority)}\n")


async def test_a_revoked_authority_is_refused_with_where_to_look(
    certified: SshdLab, authority: Path, isolated_home: Path
) -> None:
    line = f"* {_public(authority)}\n"
    with pytest.raises(HostKeyChangedError, match="revoked") as caught:
        await _connect(certified, isolated_home, f"@revoked {line}@cert-authority {line}")
    assert "@revoked" in caught.value.try_


async def test_a_certificate_nobody_can_judge_leaves_the_key_to_a_person(
    certified: SshdLab, isolated_home: Path
) -> None:
    certified.client_config(isolated_home, trust=False)
    link = SshLink("lab")
    try:
        with pytest.raises(HostKeyUnknownError) as caught:
            await link.connect()
        await link.trust(caught.value.fingerprint)
        await link.connect()
        assert link.connected
    finally:
        await link.aclose()


async def test_an_authority_for_all_hosts_does_not_shut_out_a_host_without_certificate(
    sshd: SshdLab, authority: Path, isolated_home: Path
) -> None:
    with pytest.raises(HostKeyUnknownError):
        await _connect(sshd, isolated_home, f"@cert-authority * {_public(authority)}\n")


async def test_a_revoked_key_is_refused_though_it_is_known(sshd: SshdLab, isolated_home: Path) -> None:
    known = f"[127.0.0.1]:{sshd.port} {sshd.host_key_line}\n@revoked * {sshd.host_key_line}\n"
    with pytest.raises(HostKeyChangedError, match="revoked"):
        await _connect(sshd, isolated_home, known)
