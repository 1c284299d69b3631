"""Every state of a link, provoked for real: a real sshd, real keys, a proxy that breaks the way."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from specconsole.adapters.ssh import SshLink
from specconsole.adapters.system_clock import SystemClock
from specconsole.core.views.host import HostView
from specconsole.services.board import Board
from specconsole.services.host_link import HostLink, Pace
from specconsole.services.host_questions import BoardAsker
from tests.support.fault_proxy import FaultProxy
from tests.support.sshd_lab import PASSWORD, SshdLab, make_key, sshd_lab
from tests.support.waiting import free_port, until


def ssh_keygen(*arguments: str | Path) -> str:
    """OpenSSH's own view of keys and files: the witness."""
    return subprocess.run(["ssh-keygen", *arguments], capture_output=True, check=True).stdout.decode()


QUICK = Pace(look_s=0.05, quiet_s=0.2, stale_s=0.6, probe_s=0.5)


class Bench:
    """A keeper at work, with what it published."""

    def __init__(self, name: str, *, network: Callable[[], object] | None = None) -> None:
        self.board = Board()
        clock = SystemClock()
        self.asker = BoardAsker(self.board, clock.wall_s)

        async def signs() -> object:
            return network() if network is not None else None

        self.keeper = HostLink(
            SshLink(name), self.board, clock, asker=self.asker, network=signs, jitter=lambda: 0.5, pace=QUICK
        )

    @property
    def view(self) -> HostView:
        return self.board.hosts[self.keeper.host]

    async def state(self, wanted: str, *, timeout_s: float = 30) -> HostView:
        await until(lambda: self.view.state == wanted, what=f"state {wanted}, is {self.view}", timeout_s=timeout_s)
        return self.view


@asynccontextmanager
async def keeping(name: str, *, network: Callable[[], object] | None = None) -> AsyncIterator[Bench]:
    bench = Bench(name, network=network)
    task = asyncio.create_task(bench.keeper.run())
    try:
        yield bench
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await bench.keeper.aclose()


async def test_up_with_facts_that_the_host_itself_confirms(ssh_config: Path, sshd: SshdLab) -> None:
    async with keeping(sshd.accounts[0]) as bench:
        assert bench.view.state == "connecting"
        view = await bench.state("up")
        facts = bench.keeper.facts
        assert facts is not None
        assert facts.machine_id == Path("/etc/machine-id").read_text().strip()
        assert facts.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        assert facts.clock_offset_s is not None
        assert facts.clock_uncertainty_s is not None
        assert abs(facts.clock_offset_s) <= facts.clock_uncertainty_s + 0.01
        uptime_s = float(Path("/proc/uptime").read_text().split()[0])
        assert view.uptime_s is not None
        assert uptime_s - 60 < view.uptime_s <= uptime_s
        assert (view.stale_since_s, view.detail) == (None, "")


async def test_refused_tries_again_by_itself_and_at_once_on_a_key_press(
    ssh_proxy: FaultProxy, isolated_home: Path
) -> None:
    await ssh_proxy.refuse()
    async with keeping("proxied") as bench:
        view = await bench.state("refused")
        assert "nothing listens" in view.detail
        await until(lambda: bench.view.retry_at_s is not None)
        await until(lambda: bench.view.state == "refused" and (bench.view.retry_at_s or 0) > (view.retry_at_s or 0))
        await ssh_proxy.listen_again()
        bench.keeper.nudge()
        await bench.state("up")


async def test_unreachable_by_name_and_by_silence(
    ssh_proxy: FaultProxy, isolated_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("specconsole.adapters.ssh.connect.CONNECT_S", 0.5)
    monkeypatch.setattr("specconsole.adapters.ssh.connect.LOGIN_S", 0.5)
    with (isolated_home / ".ssh" / "config").open("a") as config:
        config.write("Host nowhere\n  HostName no-such-host.invalid\n")
        config.write(f"Host silent\n  HostName 127.0.0.1\n  Port {ssh_proxy.port}\n")
    async with keeping("nowhere") as bench:
        assert "no such host name" in (await bench.state("unreachable")).detail
    ssh_proxy.black_hole()
    async with keeping("silent") as bench:
        assert "no answer in time" in (await bench.state("unreachable", timeout_s=60)).detail


async def test_authentication_failed_stops_and_does_not_hammer(ssh_config: Path, sshd: SshdLab, tmp_path: Path) -> None:
    sshd.client_config(ssh_config, alias="stranger", user=sshd.accounts[0], key=make_key(tmp_path / "other"))
    before = sshd.log.count("Connection from")
    async with keeping("stranger") as bench:
        view = await bench.state("auth-failed")
        assert "none of our keys" in view.detail
        await asyncio.sleep(1.5)  # longer than the first retry would take
        assert (bench.view.state, bench.view.retry_at_s) == ("auth-failed", None)
        assert sshd.log.count("Connection from") == before + 1


async def test_an_unknown_key_shows_its_fingerprint_and_is_trusted_on_request(
    sshd: SshdLab, isolated_home: Path, ssh_account: str
) -> None:
    sshd.client_config(isolated_home, alias="new", user=ssh_account, trust=False)
    fingerprint = ssh_keygen("-lf", sshd.folder / "host_ed25519.pub").split()[1]
    async with keeping("new") as bench:
        view = await bench.state("key-unknown")
        assert fingerprint in view.detail
        with pytest.raises(Exception, match="another key"):
            await bench.keeper.trust("SHA256:somethingelse")
        assert bench.view.state == "key-unknown"
        await bench.keeper.trust(fingerprint)
        await bench.state("up")
    found = ssh_keygen("-F", f"[127.0.0.1]:{sshd.port}", "-f", isolated_home / ".ssh" / "known_hosts")
    assert sshd.host_key_line in found


async def test_a_changed_key_is_refused_with_both_fingerprints(
    sshd: SshdLab, isolated_home: Path, ssh_account: str, tmp_path: Path
) -> None:
    sshd.client_config(isolated_home, alias="changed", user=ssh_account, trust=False)
    other = make_key(tmp_path / "impostor").with_suffix(".pub").read_text().split()[:2]
    known = isolated_home / ".ssh" / "known_hosts"
    known.write_text(f"# mine\n[127.0.0.1]:{sshd.port} {' '.join(other)}\n")
    before = known.read_bytes()
    async with keeping("changed") as bench:
        view = await bench.state("key-changed")
        assert view.detail.count("SHA256:") == 2
        assert f"{known}:2" in view.detail
        assert bench.keeper.link.offered_key is None  # nothing to trust: the old line has to go first
    assert known.read_bytes() == before


async def test_a_passphrase_is_asked_on_the_board_and_not_again_by_itself(
    sshd: SshdLab, ssh_proxy: FaultProxy, isolated_home: Path, ssh_account: str, tmp_path: Path
) -> None:
    secret = "open sesame 7391"
    key = make_key(tmp_path / "locked", secret)
    with (sshd.folder / "authorized_keys").open("a") as file:
        file.write(key.with_suffix(".pub").read_text())
    sshd.client_config(isolated_home, alias="locked", user=ssh_account, key=key, port=ssh_proxy.port)
    async with keeping("locked") as bench:
        question = await until(lambda: next(iter(bench.board.questions.values()), None))
        assert (question.host, question.secret) == ("locked", True)
        assert "passphrase" in question.text
        await bench.state("needs-person")
        bench.asker.answer(question.question_id, "wrong")
        question = await until(
            lambda: next((q for q in bench.board.questions.values() if q.question_id != question.question_id), None)
        )
        bench.asker.answer(question.question_id, secret)
        await bench.state("up")
        assert not bench.board.questions
        # The key stays unlocked in memory: a broken link comes back without anybody.
        ssh_proxy.cut()
        await until(lambda: ssh_proxy.accepted == 2)
        await bench.state("up")
        assert not bench.board.questions


async def test_declined_means_waiting_for_the_person_again(
    sshd: SshdLab, isolated_home: Path, ssh_account: str, tmp_path: Path
) -> None:
    sshd.client_config(isolated_home, alias="locked", user=ssh_account, key=make_key(tmp_path / "locked", "secret!"))
    async with keeping("locked") as bench:
        question = await until(lambda: next(iter(bench.board.questions.values()), None))
        bench.asker.answer(question.question_id, None)
        await until(lambda: bench.view.state == "needs-person" and "declined" in bench.view.detail)
        await asyncio.sleep(1.5)
        assert not bench.board.questions
        bench.keeper.nudge()
        await until(lambda: bench.board.questions)


_SECOND_FACTORS = {
    "password": {"AuthenticationMethods": "publickey,password", "PasswordAuthentication": "yes"},
    # The words are the host's: PAM asks, as it would for a code.
    "keyboard-interactive": {
        "AuthenticationMethods": "publickey,keyboard-interactive", "KbdInteractiveAuthentication": "yes",
        "UsePAM": "yes",
    },
}  # fmt: skip


@pytest.mark.parametrize("method", _SECOND_FACTORS)
async def test_a_second_factor_is_asked_for_and_a_reconnect_stops_there(isolated_home: Path, method: str) -> None:
    with sshd_lab(options=_SECOND_FACTORS[method]) as lab:
        if len(lab.accounts) < 2:
            pytest.skip("needs an account with a known password (root and a mount namespace)")
        lab.client_config(isolated_home, alias="two", user="tuner")
        async with keeping("two") as bench:
            question = await until(lambda: next(iter(bench.board.questions.values()), None))
            assert "password" in question.text.lower()
            assert question.secret
            bench.asker.answer(question.question_id, PASSWORD)
            await bench.state("up")
            assert f"Accepted {method}" in lab.log
            await bench.keeper.link.aclose()
            view = await bench.state("needs-person")
            assert view.stale_since_s is not None
            assert not bench.board.questions  # nobody is asked by a reconnect
        assert PASSWORD not in lab.log


async def test_a_silent_link_is_stale_and_live_again_when_it_moves(ssh_proxy: FaultProxy, isolated_home: Path) -> None:
    async with keeping("proxied") as bench:
        await bench.state("up")
        ssh_proxy.stall()
        view = await bench.state("stale")
        assert view.stale_since_s is not None
        ssh_proxy.resume()
        view = await bench.state("up")
        assert view.stale_since_s is None
        assert ssh_proxy.accepted == 1


@pytest.mark.faults
async def test_a_half_open_link_is_noticed_within_20_s_and_replaced(ssh_proxy: FaultProxy, isolated_home: Path) -> None:
    loop = asyncio.get_running_loop()
    async with keeping("proxied") as bench:
        await bench.state("up")
        began_s = loop.time()
        ssh_proxy.half_open()
        await bench.state("stale")
        await until(lambda: any(fact.kind == "host-lost" for fact in bench.board.facts), timeout_s=25)
        assert loop.time() - began_s < 20
        await bench.state("up")
        assert ssh_proxy.accepted == 2
        assert [fact.kind for fact in bench.board.facts] == ["host-lost", "host-back"]


async def test_a_cut_link_comes_back_at_once_and_is_stale_meanwhile(ssh_proxy: FaultProxy, isolated_home: Path) -> None:
    async with keeping("proxied") as bench:
        await bench.state("up")
        await ssh_proxy.refuse()
        ssh_proxy.cut()
        view = await bench.state("refused")
        assert view.stale_since_s is not None
        await ssh_proxy.listen_again()
        view = await bench.state("up")
        assert view.stale_since_s is None


async def test_a_network_change_is_acted_on_at_once(ssh_proxy: FaultProxy, isolated_home: Path) -> None:
    address = ["10.0.0.1"]
    async with keeping("proxied", network=lambda: tuple(address)) as bench:
        await bench.state("up")
        ssh_proxy.half_open()
        address[0] = "192.168.1.7"
        # The keepalive alone would take 15 s.
        await until(lambda: ssh_proxy.accepted == 2, timeout_s=10)
        await bench.state("up")


async def test_a_port_nobody_listens_on_is_not_an_unknown_name(ssh_config: Path, sshd: SshdLab) -> None:
    sshd.client_config(ssh_config, alias="closed-port", port=free_port())
    async with keeping("closed-port") as bench:
        await bench.state("refused")
