"""Machinery of the tests: real servers, a real sshd, a proxy that breaks links, processes that resist."""
