"""A real OpenSSH server for tests, on a free port of the loopback, touching nothing of the system's.

Run as root it lives in a mount namespace of its own in which /etc/passwd, /etc/shadow, /etc/group and
/etc/pam.d/sshd are the lab's: so there are accounts with any login shell and any password, and none of them
exists outside. Where namespaces are forbidden (a plain container) it serves root alone, with a home folder of its
own; run as an ordinary user it serves that user alone. `lab.accounts` says who can log in.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.waiting import free_port

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/sbin:" + os.environ.get("PATH", ""))
AS_ROOT = os.geteuid() == 0
RUN_MARK = "SPECCONSOLE_TEST_RUN"
"""In the environment of everything that a test run starts: the leak check finds processes by it."""
PASSWORD = "correct horse " + secrets.token_hex(4)
"""Of every account; made anew in each run so that a leak can be searched for."""

SFTP_SERVERS = "/usr/lib/openssh/sftp-server /usr/libexec/openssh/sftp-server /usr/libexec/sftp-server"

_SHELLS = {
    "root": "/bin/bash",
    "tuner": "/bin/bash",
    "colleague": "/bin/bash",
    "dasher": "/bin/dash",
    "fisher": shutil.which("fish") or "",
    "cshell": shutil.which("csh") or shutil.which("tcsh") or "",
    "caged": shutil.which("rbash") or "",
    "chatty": "/bin/bash",
    "closed": "/usr/sbin/nologin",
}
"""Account -> login shell; an account whose shell is not installed is left out."""


@dataclass
class SshdLab:
    """A running sshd; `client_config` writes what a client needs to reach it."""

    folder: Path
    port: int
    accounts: tuple[str, ...]
    process: subprocess.Popen[bytes]
    homes: dict[str, Path] = field(default_factory=dict)

    @property
    def client_key(self) -> Path:
        return self.folder / "client_ed25519"

    @property
    def host_key_line(self) -> str:
        """`ssh-ed25519 AAAA...`."""
        return " ".join((self.folder / "host_ed25519.pub").read_text().split()[:2])

    @property
    def log(self) -> str:
        return (self.folder / "sshd.log").read_text(errors="replace")

    def client_config(
        self, home: Path, *, alias: str = "lab", user: str = "root", port: int | None = None, trust: bool = True,
        key: Path | None = None, more: str = "",
    ) -> None:  # fmt: skip
        """Adds `alias` to HOME/.ssh/config, and the host's key to its known_hosts when `trust`."""
        port = self.port if port is None else port
        ssh = home / ".ssh"
        ssh.mkdir(mode=0o700, exist_ok=True)
        text = f"Host {alias}\n  HostName 127.0.0.1\n  Port {port}\n  User {user}\n"
        text += f"  IdentityFile {key or self.client_key}\n  IdentitiesOnly yes\n{more}\n"
        with (ssh / "config").open("a") as config:
            config.write(text)
        if trust:
            with (ssh / "known_hosts").open("a") as known:
                known.write(f"[127.0.0.1]:{port} {self.host_key_line}\n")

    def give(self, path: Path, account: str) -> None:
        """Makes a file or folder the account's own."""
        if can_isolate():
            owner = self.homes[account].stat()
            os.chown(path, owner.st_uid, owner.st_gid)

    def session_pids(self) -> list[int]:
        """The sshd processes that serve connections (children of the listener, and theirs)."""
        found = [self.process.pid]
        for pid in found:
            found += _children(pid)
        names = {pid: _comm(pid) for pid in found}
        return [pid for pid in found if names[pid] == "sshd" and pid != self.listener_pid]

    @property
    def listener_pid(self) -> int:
        return int((self.folder / "sshd.pid").read_text())

    def stop(self) -> None:
        pids = [self.process.pid]
        for pid in pids:
            pids += _children(pid)
        for pid in reversed(pids):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(10)


def _children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _comm(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _keygen(path: Path, *extra: str) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path), *extra], check=True)


def make_key(path: Path, passphrase: str = "") -> Path:
    """A new client key, encrypted when `passphrase` is given."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", str(path)], check=True)
    return path


def _write_accounts(folder: Path) -> dict[str, Path]:
    crypted = subprocess.run(
        ["openssl", "passwd", "-6", "-stdin"], input=PASSWORD.encode(), capture_output=True, check=True
    ).stdout.decode().strip()  # fmt: skip
    passwd, shadow, group, homes = [], [], ["root:x:0:", "lab:x:12000:", "nogroup:x:65534:"], {}
    for number, (name, shell) in enumerate(_SHELLS.items()):
        if not shell:
            continue
        uid, gid = (0, 0) if name == "root" else (12000 + number, 12000)
        home = folder / "home" / name
        home.mkdir(parents=True)
        os.chown(home, uid, gid)
        homes[name] = home
        passwd.append(f"{name}:x:{uid}:{gid}:{name}:{home}:{shell}")
        shadow.append(f"{name}:{crypted}:19000:0:99999:7:::")
    passwd += ["sshd:x:102:65534::/run/sshd:/usr/sbin/nologin", "nobody:x:65534:65534:nobody:/nonexistent:/bin/false"]
    (folder / "passwd").write_text("\n".join(passwd) + "\n")
    (folder / "shadow").write_text("\n".join(shadow) + "\n")
    (folder / "group").write_text("\n".join(group) + "\n")
    (folder / "pam").write_text(
        "auth required pam_unix.so\naccount required pam_permit.so\nsession required pam_permit.so\n"
    )
    (homes["chatty"] / ".bashrc").write_text(
        "echo 'Welcome to the cluster!   quota: 93% used'\necho 'motd on stderr' >&2\nprintf 'no newline at the end'\n"
    )
    return homes


@contextlib.contextmanager
def sshd_lab(
    *,
    options: Mapping[str, str] | None = None,
    more: Sequence[str] = (),
    port: int | None = None,
    like: SshdLab | None = None,
    hide_sftp_server: bool = False,
) -> Iterator[SshdLab]:
    """Starts a server and stops it with everything that it serves.

    `options` replace lines of its configuration (`{"MaxSessions": "2"}`), `more` are added at the end (Match
    blocks). `port` asks for that port; `like` takes over another lab's client key (for a second host).
    """
    if SSHD is None:
        raise FileNotFoundError("sshd is not installed")
    folder = Path(tempfile.mkdtemp(prefix="specconsole-sshd-", dir="/tmp"))  # other accounts must get there
    folder.chmod(0o755)
    port = port or free_port()
    try:
        _keygen(folder / "host_ed25519")
        if like is None:
            _keygen(folder / "client_ed25519")
        else:
            for name in ("client_ed25519", "client_ed25519.pub"):
                shutil.copy(like.folder / name, folder / name)
        shutil.copy(folder / "client_ed25519.pub", folder / "authorized_keys")
        set_env = {RUN_MARK: os.environ.get(RUN_MARK, "sshd-lab")}
        homes: dict[str, Path]
        if AS_ROOT:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        if can_isolate():
            homes = _write_accounts(folder)
        else:
            homes = {pwd.getpwuid(os.geteuid()).pw_name: folder / "home"}
            (folder / "home").mkdir()
            set_env["HOME"] = str(folder / "home")
        settings = {
            "Port": str(port), "ListenAddress": "127.0.0.1", "HostKey": str(folder / "host_ed25519"),
            "PidFile": str(folder / "sshd.pid"), "AuthorizedKeysFile": str(folder / "authorized_keys"),
            "StrictModes": "no", "UsePAM": "no", "PasswordAuthentication": "no", "KbdInteractiveAuthentication": "no",
            "PermitRootLogin": "yes", "MaxStartups": "100", "MaxSessions": "10", "PrintMotd": "no", "UseDNS": "no",
            "LogLevel": "VERBOSE", "Subsystem": "sftp internal-sftp",
            "SetEnv": " ".join(f"{name}={value}" for name, value in set_env.items()),
        } | dict(options or {})  # fmt: skip
        lines = [f"{key} {value}" for key, value in settings.items() if value]
        (folder / "sshd_config").write_text("\n".join([*lines, *more]) + "\n")
        process = _start(folder, hide_sftp_server=hide_sftp_server)
        lab = SshdLab(folder, port, tuple(homes), process, homes)
        try:
            _wait_listening(lab)
            yield lab
        finally:
            lab.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@functools.cache
def can_isolate() -> bool:
    """Whether accounts can be invented in a mount namespace."""
    if not AS_ROOT:
        return False
    return (
        subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode == 0
    )


def _start(folder: Path, *, hide_sftp_server: bool = False) -> subprocess.Popen[bytes]:
    serve = [str(SSHD), "-D", "-e", "-f", str(folder / "sshd_config")]
    argv = serve
    if can_isolate():
        binds = {"passwd": "/etc/passwd", "shadow": "/etc/shadow", "group": "/etc/group", "pam": "/etc/pam.d/sshd"}
        mounts = "".join(f'mount --bind "$1/{name}" {target} && ' for name, target in binds.items())
        if hide_sftp_server:
            mounts += "for p in " + SFTP_SERVERS + "; do [ ! -e $p ] || mount --bind /dev/null $p; done && "
        argv = [
            "unshare",
            "-m",
            "--propagation",
            "private",
            "sh",
            "-c",
            mounts + 'shift && exec "$@"',
            "sh",
            str(folder),
        ]
        argv += serve
    with (folder / "sshd.log").open("ab") as log:
        return subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/",
            env={
                "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                RUN_MARK: os.environ.get(RUN_MARK, "sshd-lab"),
            },
        )  # fmt: skip


def _wait_listening(lab: SshdLab) -> None:
    deadline = time.monotonic() + 20
    while f"Server listening on 127.0.0.1 port {lab.port}" not in lab.log:
        if lab.process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"sshd did not start: {lab.log}")
        time.sleep(0.02)
