"""A server that resists being stopped, for real: run it as `python victim.py FLAGS`, standard library only.

It says on standard output, one JSON object a line, every process it starts (`{"role": ..., "pid": ...}`) and what
happens to it, so that a test knows all pids from a witness of its own. A role is:
`main`, `child` (plain fork), `daemon` (forked twice, in a session of its own, parent 1), `respawned` (started again
whenever it dies), `scrubbed` (re-executed with an empty environment, same session), `renamed` (argv overwritten
by exec with another name), `hopping` (a chain of short-lived processes, each the parent of the next). When all
stand, `{"role": "main", "state": "running"}` is said. With --port the main process answers any request with 200.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import sys
import threading
import time

NAP_S = 3600.0


def say(**facts: object) -> None:
    os.write(1, json.dumps(facts).encode() + b"\n")


STANDING, STANDS = os.pipe()
"""Every process started writes a byte into it once it has said itself; `main` waits for as many."""


def stand(role: str) -> None:
    say(role=role, pid=os.getpid())
    os.write(STANDS, b".")


def sleep_for_ever(role: str, *, ignore_term: bool) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN if ignore_term else signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN if ignore_term else signal.SIG_DFL)
    stand(role)
    while True:
        time.sleep(NAP_S)


def fork_into(role: str, *, ignore_term: bool, holding: socket.socket | None = None) -> int:
    """A child that sleeps for ever; it inherits `holding` when the port is to stay held by it."""
    pid = os.fork()
    if pid == 0:
        if holding is not None:
            holding.set_inheritable(True)
        sleep_for_ever(role, ignore_term=ignore_term)
    return pid


def fork_twice(*, ignore_term: bool) -> None:
    """A daemon: no longer our child, no longer in our session or process group."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        if os.fork() == 0:
            sleep_for_ever("daemon", ignore_term=ignore_term)
        os._exit(0)
    os.waitpid(pid, 0)


def exec_sleeper(role: str, argv0: str, environment: dict[str, str]) -> None:
    if os.fork() == 0:
        stand(role)
        os.execve("/bin/sleep", [argv0, str(int(NAP_S))], environment)


def keep_respawning(ignore_term: bool) -> None:
    """As a supervisor does: another one as soon as the last one is dead. Runs in a thread for ever."""
    while True:
        os.waitpid(fork_into("respawned", ignore_term=ignore_term), 0)


def hop_for_ever(ignore_term: bool) -> None:
    """A process that is another one fifty times a second: it forks and ends, so that a signal hits nobody.

    For a minute only, in case that nobody catches it.
    """
    if os.fork() != 0:
        return
    signal.signal(signal.SIGTERM, signal.SIG_IGN if ignore_term else signal.SIG_DFL)
    for _ in range(3000):
        say(role="hopping", pid=os.getpid())
        time.sleep(0.02)
        if os.fork() != 0:
            os._exit(0)
    os._exit(0)


def answer(listener: socket.socket) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--children", type=int, default=0)
    parser.add_argument("--daemons", type=int, default=0)
    parser.add_argument("--scrubbed", type=int, default=0)
    parser.add_argument("--renamed", type=int, default=0)
    parser.add_argument("--respawn", action="store_true")
    parser.add_argument("--hopping", action="store_true")
    parser.add_argument("--ignore-term", action="store_true", help="main and all that it starts")
    parser.add_argument("--children-ignore-term", action="store_true", help="only what main starts")
    parser.add_argument("--drain", action="store_true", help="on TERM close the port and wait for ever for requests")
    parser.add_argument("--port", type=int, help="listen here (0: any; said as `port`)")
    parser.add_argument("--child-holds-port", action="store_true")
    parser.add_argument("--log-lines", type=int, default=0, help="numbered lines on standard output, then go on")
    parser.add_argument("--line-interval-s", type=float, default=0.0)
    parser.add_argument("--die-after-s", type=float, default=None)
    parser.add_argument("--exit-status", type=int, default=0)
    args = parser.parse_args()

    stubborn = args.ignore_term or args.children_ignore_term
    listener = None
    if args.port is not None:
        listener = socket.create_server(("127.0.0.1", args.port))
        say(role="listener", pid=os.getpid(), port=listener.getsockname()[1])
    for _ in range(args.children):
        fork_into("child", ignore_term=stubborn, holding=listener if args.child_holds_port else None)
    for _ in range(args.daemons):
        fork_twice(ignore_term=stubborn)
    for _ in range(args.scrubbed):
        exec_sleeper("scrubbed", "sleep", {})
    for _ in range(args.renamed):
        exec_sleeper("renamed", "innocent-looking", dict(os.environ))
    if args.hopping:
        hop_for_ever(stubborn)
    if args.respawn:
        threading.Thread(target=keep_respawning, args=(stubborn,), daemon=True).start()
    if listener is not None:
        threading.Thread(target=answer, args=(listener,), daemon=True).start()

    ended = threading.Event()

    def on_term(number: int, frame: object) -> None:
        say(role="main", pid=os.getpid(), signal=number)
        if args.drain and listener is not None:
            listener.close()
        if not args.drain and not args.ignore_term:
            ended.set()

    signal.signal(signal.SIGTERM, on_term)
    signal.signal(signal.SIGINT, on_term)
    say(role="main", pid=os.getpid())
    for _ in range(args.children + args.daemons + args.scrubbed + args.renamed + args.respawn):
        os.read(STANDING, 1)
    for number in range(1, args.log_lines + 1):
        os.write(1, b"line %d of %d\n" % (number, args.log_lines))
        if args.line_interval_s and ended.wait(args.line_interval_s):
            break
    say(role="main", pid=os.getpid(), state="running")
    ended.wait(args.die_after_s)
    # No waiting for children and no exit handlers: a server that ends badly leaves its children behind.
    os._exit(args.exit_status)


if __name__ == "__main__":
    sys.exit(main())
