"""Engines in a host's process listing. Blocks are in the form that DISCOVER_SH prints; stat lines are real ones."""

from __future__ import annotations

from specconsole.core.hosts.adoption import adopted_spec
from specconsole.core.hosts.discovery import FoundEngine, masked_argv, parse_discovered, server_argv
from specconsole.core.hosts.log_command import once, restarted

STAT = "{pid} ({name}) S {ppid} 29214 29214 0 -1 4194304 50751 504 0 0 25 15 0 0 20 0 12 0 {ticks} 839991296 112220 0"


def block(
    pid: int, ppid: int, argv: list[str], fds: list[str], *, user: str = "bob", launch: str = "", cgroup: str = ""
) -> str:
    packed = "\0".join(argv).encode("utf-8", "surrogateescape").hex()
    lines = [
        f"#pid={pid}",
        "stat=" + STAT.format(pid=pid, ppid=ppid, name="python (x)", ticks=1000 + pid),
        f"user={user}",
    ]
    lines += [f"argv={packed}00", f"launch={launch}", "cwd=/srv", *([f"cgroup={cgroup}"] if cgroup else [])]
    return "\n".join([*lines, *(f"fd={fd}" for fd in fds)]) + "\n"


def listening(*pairs: tuple[int, int]) -> str:
    rows = [
        f"   0: 0100007F:{port:04X} 00000000:0000 0A 0:0 00:0 0 1000 0 {inode} 1 0 100 0 0 10 0"
        for port, inode in pairs
    ]
    return "#listen\n" + "\n".join(rows) + "\n#end\n"


def parsed(*blocks: str, listen: str = listening()) -> tuple[FoundEngine, ...]:
    head = "boot=b/pid:[1]\nuptime=1000.0\nhertz=100\nself=999\n"
    return parse_discovered((head + "".join(blocks) + listen).encode("utf-8", "surrogateescape"))


def test_vllm_with_its_workers_is_one_server_whose_port_is_the_one_it_holds() -> None:
    api = ["/venv/bin/python3", "/venv/bin/vllm", "serve", "model", "--port", "8000", "--api-key", "s3cret"]
    [found] = parsed(
        block(10, 1, api, ["1 /srv/my log", "5 socket:[77]", "6 socket:[78]"]),
        block(11, 10, ["VLLM::EngineCore"], ["1 /srv/my log"]),
        listen=listening((8000, 77), (29500, 78)),
    )
    assert (found.pid, found.engine, found.port, found.log_path, found.user) == (10, "vllm", 8000, "/srv/my log", "bob")
    assert found.pids == (10, 11)
    assert found.age_s == 1000.0 - 1010 / 100
    assert "s3cret" not in " ".join(found.shown_argv)
    spec = adopted_spec("id", found=found, name="")
    assert "s3cret" not in spec.to_json_line()
    assert (spec.profile, spec.engine, spec.model, spec.port, spec.adopted) == (
        "vllm-8000",
        "vllm",
        "model",
        8000,
        True,
    )


def test_a_pipe_into_tee_leads_to_the_file() -> None:
    sglang = ["python", "-m", "sglang.launch_server", "--port=30000"]
    [found] = parsed(
        block(10, 1, sglang, ["1 pipe:[5]", "2 pipe:[5]"]),
        block(12, 1, ["tee", "/srv/x.log"], ["0 pipe:[5]", "1 /dev/pts/3", "3 /srv/x.log"]),
    )
    assert (found.engine, found.port, found.log_path) == ("sglang", 30000, "/srv/x.log")


def test_in_a_container_its_log_is_a_command() -> None:
    container = "0::/system.slice/docker-0123456789abcdef0123.scope"
    [found] = parsed(block(10, 1, ["vllm", "serve", "m"], ["1 pipe:[5]"], cgroup=container))
    assert (found.log_path, found.log_command) == (None, ("docker", "logs", "-f", "0123456789ab"))


def test_what_some_console_started_says_so_and_other_programs_are_not_servers() -> None:
    found = parsed(
        block(10, 1, ["llama-server", "-m", "x.gguf"], ["1 /dev/null"], launch="2026-abc"),
        block(20, 1, ["grep", "vllm"], []),
        block(21, 1, ["vim", "sglang.log"], []),
    )
    assert [(one.engine, one.launch_id, one.log_path, one.port) for one in found] == [
        ("llamacpp", "2026-abc", None, None)
    ]


def test_a_cut_answer_proves_nothing() -> None:
    assert parsed(block(10, 1, ["llama-server"], []), listen="#listen\n") == ()


def test_secret_words_are_hidden_wherever_they_stand() -> None:
    assert masked_argv(["a", "--api-key", "k1", "k2", "--x", "--hf-token=t", "--key-file", "f"]) == (
        "a", "--api-key", "***", "***", "--x", "--hf-token=***", "--key-file", "f",
    )  # fmt: skip
    assert server_argv(["python3.11", "/v/bin/sglang", "serve"]) == ("/v/bin/sglang", "serve")
    assert server_argv(["python3", "-m", "x"]) == ("python3", "-m", "x")


def test_log_commands_go_on_a_little_before_where_they_broke_off() -> None:
    assert restarted(["docker", "logs", "-f", "--since", "5", "c"], 1000.0) == (
        "docker",
        "logs",
        "--since",
        "990",
        "-f",
        "c",
    )
    assert restarted(["docker", "logs", "-f", "c"], None) == ("docker", "logs", "-f", "c")
    assert restarted(["journalctl", "-u", "x", "-n", "5", "-f"], 1000.0) == (
        "journalctl",
        "--since",
        "@990",
        "-u",
        "x",
        "-f",
    )
    assert restarted(["kubectl", "logs", "-f", "p"], 1000.0)[2] == "--since-time=1970-01-01T00:16:30Z"
    assert restarted(["tail", "-f", "x"], 1000.0) == ("tail", "-f", "x")
    assert once(["docker", "logs", "-tf", "c"], 1000.0) == ("docker", "logs", "--since", "990", "-t", "c")
    assert once(["tail", "-n", "+1", "-f", "x"], None) == ("tail", "-n", "+1", "x")
