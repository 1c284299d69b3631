"""A host over SSH: one connection, at most four session channels, no listening port, no helper left behind."""

from specconsole.adapters.ssh.link import SshLink

__all__ = ["SshLink"]
