"""What services may ask of the outside world, where there is more than one real implementation.

`Transport` is a way to a host (`local`, `ssh`); everything that happens on a host goes through it. Every
implementation passes tests/contracts/. Errors are those of `specconsole.errors`; a method that returns has
done what it says, and `None` always means "unknown", never "fine".
"""

from __future__ import annotations

from specconsole.ports.clock import Clock
from specconsole.ports.hardware import GpuProbe, HardwareTools, HostProbe
from specconsole.ports.http import HttpAnswer, HttpClient, ServerApi
from specconsole.ports.launcher import BenchLauncher, Launcher
from specconsole.ports.link import Asker, Link, LinkAbilities, OfferedKey
from specconsole.ports.transport import ByteStream, Completed, FileStat, RemoteFile, Transport

__all__ = [
    "Asker",
    "BenchLauncher",
    "ByteStream",
    "Clock",
    "Completed",
    "FileStat",
    "GpuProbe",
    "HardwareTools",
    "HostProbe",
    "HttpAnswer",
    "HttpClient",
    "Launcher",
    "Link",
    "LinkAbilities",
    "OfferedKey",
    "RemoteFile",
    "ServerApi",
    "Transport",
]
