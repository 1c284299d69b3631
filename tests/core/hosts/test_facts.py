"""What hosts say about themselves, read; the first output is a real one (Debian 12, 2026-11)."""

from __future__ import annotations

from specconsole.core.hosts.doctor import Connection, findings
from specconsole.core.hosts.facts import ClockReading, HostFacts, notes_of, parse_facts, with_clock

REAL = b"""uptime=2814.06
machine=3d1219c7c4c5404aaa1f6d2a48adfda4
boot=2184dd29-39e2-4ef5-ad3b-091b64a44a73
kernel=Linux 6.18.44
arch=x86_64
cpus=2
user=tuner
uid=12001
home=/home/tuner
shell=/usr/bin/fish
os=Debian GNU/Linux 12 (bookworm)
tool:setsid=/usr/bin/setsid
tool:ps=/usr/bin/ps
tool:stat=/usr/bin/stat
tool:tail=/usr/bin/tail
tool:head=/usr/bin/head
tool:mktemp=/usr/bin/mktemp
tool:mkdir=/usr/bin/mkdir
tool:nvidia-smi=/usr/bin/nvidia-smi
python:/usr/bin/python3=3.11.2
python:/usr/bin/python3.9=3.9.18
state=/home/tuner/.local/state
state_writable=yes
state_fs=nfs
state_free=82635232
shm_free=65536
hidepid=
"""


def test_a_real_host() -> None:
    facts = parse_facts(REAL)
    assert (facts.user, facts.uid, facts.login_shell) == ("tuner", 12001, "/usr/bin/fish")
    assert facts.pythons == (("/usr/bin/python3", "3.11.2"), ("/usr/bin/python3.9", "3.9.18"))
    assert (facts.gpu_tools, facts.missing, facts.processes_hidden) == (("nvidia-smi",), (), False)
    assert (facts.state_free_bytes, facts.kill_user_processes) == (82635232 * 1024, None)


def test_silence_is_unknown_and_no_trouble() -> None:
    assert parse_facts(b"") == HostFacts()
    assert parse_facts(b"\xff\xfe=\n=x\nnonsense\nuptime=soon\nuid=-1\n") == HostFacts()
    assert notes_of(HostFacts()) == ()


def test_the_clock_is_measured_on_the_quickest_trip() -> None:
    slow = ClockReading(b"1000.9\n", 900.0, 902.0)
    quick = ClockReading(b"1000.15\n", 900.1, 900.2)
    facts = with_clock(HostFacts(), [slow, quick, ClockReading(b"garbage", 0, 0)])
    assert facts.clock_offset_s is not None
    assert abs(facts.clock_offset_s - 100.0) < 1e-6
    assert facts.clock_uncertainty_s is not None
    assert abs(facts.clock_uncertainty_s - 0.05) < 1e-6
    # busybox' date prints %N as it is.
    assert with_clock(HostFacts(), [ClockReading(b"1000.%N\n", 900.0, 900.0)]).clock_offset_s == 100.0


def test_what_a_person_should_know() -> None:
    facts = parse_facts(REAL + b"systemd=yes\nkill_user=no\nkill_user=yes\n")
    assert facts.kill_user_processes is True
    noted = notes_of(with_clock(facts, [ClockReading(b"1100", 1000.0, 1000.1)]))
    assert any("KillUserProcesses" in note for note in noted)
    assert any("100 s ahead" in note for note in noted)
    assert not notes_of(parse_facts(REAL + b"systemd=yes\nkill_user=yes\nlinger=yes\n"))


def test_the_doctor_says_what_is_broken_and_what_to_do() -> None:
    facts = parse_facts(
        REAL.replace(b"state_writable=yes", b"state_writable=no").replace(b"tool:setsid=/usr/bin/setsid\n", b"")
    )
    report = {one.what: one for one in findings(Connection(sftp=False, sessions=2, forwards=False), facts)}
    assert {what for what, one in report.items() if one.level == "broken"} == {
        "ports of the host",
        "tools",
        "launching",
    }
    assert "setsid" in report["tools"].detail
    assert report["session channels"].level == "limited"
    assert report["shared memory"].level == "limited"
    assert all(one.try_ for one in report.values() if one.level != "works")
