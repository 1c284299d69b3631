"""TLS over any byte stream, for HTTPS through a host's transport: an SSH channel has no socket that ssl could wrap."""

from __future__ import annotations

import ssl
from typing import Any

import httpcore

_BLOCK_BYTES = 65536


class TlsStream(httpcore.AsyncNetworkStream):
    """What httpcore reads and writes; `begin` first."""

    def __init__(self, inner: httpcore.AsyncNetworkStream, context: ssl.SSLContext, server_name: str | None) -> None:
        self._inner = inner
        self._came, self._goes = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._came, self._goes, server_hostname=server_name)

    async def begin(self, timeout: float | None) -> None:
        """The handshake. Raises httpcore.ConnectError with the reason."""
        try:
            while True:
                try:
                    self._tls.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    await self._flush(timeout)
                    await self._fill(timeout)
            await self._flush(timeout)
        except ssl.SSLError as error:
            raise httpcore.ConnectError(getattr(error, "verify_message", "") or str(error)) from error

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        while True:
            try:
                return self._tls.read(max_bytes)
            except ssl.SSLWantReadError:
                await self._flush(timeout)
                if not await self._fill(timeout):
                    return b""
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b""
            except ssl.SSLError as error:
                raise httpcore.ReadError(str(error)) from error

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        # A BIO in memory takes everything at once.
        self._tls.write(buffer)
        await self._flush(timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        raise httpcore.ConnectError("TLS within TLS")

    def get_extra_info(self, info: str) -> Any:
        return None

    async def _flush(self, timeout: float | None) -> None:
        if self._goes.pending:
            await self._inner.write(self._goes.read(), timeout)

    async def _fill(self, timeout: float | None) -> bool:
        data = await self._inner.read(_BLOCK_BYTES, timeout)
        if data:
            self._came.write(data)
        else:
            self._came.write_eof()
        return bool(data)


def client_context(ca_pem: str | None) -> ssl.SSLContext:
    """Checks names and certificates. Raises ValueError for a text that holds no certificate."""
    try:
        context = ssl.create_default_context(cadata=ca_pem) if ca_pem is not None else ssl.create_default_context()
    except ssl.SSLError as error:
        raise ValueError(str(error)) from None
    context.set_alpn_protocols(["http/1.1"])
    return context
