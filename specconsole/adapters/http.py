"""HTTP to the servers of one host, over that host's Transport: no local port is opened, no proxy variable is read.

Every request has a connection of its own. A kept one would answer `reset` for a server that is gone and came back, and
would make SGLang and vLLM wait for it when they are told to stop.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import Any

import httpcore
import httpx

from specconsole.adapters.tls_stream import TlsStream, client_context
from specconsole.errors import (
    BadInputError,
    ConnectionRefusedAtHostError,
    ConnectionResetAtHostError,
    HostUnreachableError,
    SpecconsoleError,
    TransportError,
)
from specconsole.ports import HttpAnswer, Transport

MAX_BODY_BYTES = 8 * 1024 * 1024


class _Stream(httpcore.AsyncNetworkStream):
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            async with asyncio.timeout(timeout):
                return await self._reader.read(max_bytes)
        except TimeoutError as error:
            raise httpcore.ReadTimeout(str(error)) from error
        except OSError as error:
            raise httpcore.ReadError(str(error)) from error

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        try:
            async with asyncio.timeout(timeout):
                self._writer.write(buffer)
                await self._writer.drain()
        except TimeoutError as error:
            raise httpcore.WriteTimeout(str(error)) from error
        except OSError as error:
            raise httpcore.WriteError(str(error)) from error

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        secured = TlsStream(self, ssl_context, server_hostname)
        try:
            await secured.begin(timeout)
        except BaseException:
            await self.aclose()
            raise
        return secured

    async def aclose(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError, SpecconsoleError):
            await self._writer.wait_closed()


class _Backend(httpcore.AsyncNetworkBackend):
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        try:
            async with asyncio.timeout(timeout):
                reader, writer = await self._transport.open_connection(host, port)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(str(error)) from error
        return _Stream(reader, writer)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _Body(httpx.AsyncByteStream):
    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        assert isinstance(self._response.stream, AsyncIterable)
        async for part in self._response.stream:
            yield part

    async def aclose(self) -> None:
        await self._response.aclose()


class HostTransport(httpx.AsyncBaseTransport):
    """What httpx sends through: connections that begin at the host."""

    def __init__(self, transport: Transport, context: ssl.SSLContext | None = None) -> None:
        self._pool = httpcore.AsyncConnectionPool(
            network_backend=_Backend(transport), max_connections=64, max_keepalive_connections=0, ssl_context=context
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        response = await self._pool.handle_async_request(
            httpcore.Request(
                method=request.method,
                url=httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(response.status, headers=response.headers, stream=_Body(response))

    async def aclose(self) -> None:
        await self._pool.aclose()


class HostHttp:
    """`ports.HttpClient` over a Transport."""

    def __init__(
        self, transport: Transport, *, headers: dict[str, str] | None = None, context: ssl.SSLContext | None = None
    ) -> None:
        self._transport, self._headers = transport, headers
        self._host = transport.host
        self._bearer = ""
        self._scheme = "http" if context is None else "https"
        self._client = httpx.AsyncClient(
            transport=HostTransport(transport, context), trust_env=False, headers=headers, timeout=httpx.Timeout(None)
        )

    async def get(self, host: str, port: int, path: str, *, timeout_s: float) -> HttpAnswer:
        return await self._ask("GET", host, port, path, None, timeout_s)

    async def post_json(self, host: str, port: int, path: str, body: object, *, timeout_s: float) -> HttpAnswer:
        return await self._ask("POST", host, port, path, json.dumps(body).encode(), timeout_s)

    def with_key(self, key: str) -> HostHttp:
        other = HostHttp.__new__(HostHttp)
        other._host, other._client, other._bearer = self._host, self._client, key
        other._transport, other._headers, other._scheme = self._transport, self._headers, self._scheme
        return other

    def with_tls(self, ca_pem: str | None) -> HostHttp:
        try:
            context = client_context(ca_pem)
        except ValueError as error:
            raise BadInputError(f"no certificate of an authority: {error}", where="--ca-file") from None
        other = HostHttp(self._transport, headers=self._headers, context=context)
        other._bearer = self._bearer
        return other

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _ask(
        self, method: str, host: str, port: int, path: str, body: bytes | None, timeout_s: float
    ) -> HttpAnswer:
        url = httpx.URL(scheme=self._scheme, host=host, port=port, path=path)
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if self._bearer:
            headers["Authorization"] = f"Bearer {self._bearer}"
        where = f"{self._host}: {self._scheme}://{host}:{port}{path}"
        try:
            async with (
                asyncio.timeout(timeout_s),
                self._client.stream(method, url, content=body, headers=headers) as response,
            ):
                data = bytearray()
                async for part in response.aiter_bytes():
                    data += part
                    if len(data) > MAX_BODY_BYTES:
                        raise BadInputError(f"the answer is larger than {MAX_BODY_BYTES} bytes", where=where)
                return HttpAnswer(response.status_code, bytes(data))
        except ConnectionRefusedAtHostError:
            raise
        except (TimeoutError, httpcore.TimeoutException, httpx.TimeoutException):
            # Before OSError, of which TimeoutError is one.
            raise TimeoutError from None
        except (httpcore.NetworkError, httpcore.ProtocolError, httpx.TransportError, ConnectionError) as error:
            raise ConnectionResetAtHostError(str(error) or type(error).__name__, where=where) from error
        except TransportError:
            raise
        except OSError as error:
            raise HostUnreachableError(error.strerror or type(error).__name__, where=where) from error
