"""The driver's side of Regent's exchange: fetches a task, hands in the answer (docs/spark.md).

Only one replica of Regent waits for this job, and the next one does if that dies. So every address
of the exchange's name is tried, again and again, until one knows the token.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import sys
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from regent_rebalance.errors import ExchangeError

STATUS_HEADER: Final = "Regent-Planner-Status"

_PATIENCE_S: Final = 300.0
"""Longer than another Regent takes to go on where one has died."""

_PAUSE_S: Final = 2.0
_TIMEOUT_S: Final = 60.0
"""Without a byte."""

_ELSEWHERE: Final = frozenset(
    {
        HTTPStatus.UNAUTHORIZED,
        HTTPStatus.REQUEST_TIMEOUT,
        HTTPStatus.INTERNAL_SERVER_ERROR,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)
"""Another replica, or the same one later, may answer otherwise."""


class _Answer(NamedTuple):
    status: int
    body: bytes

    @property
    def text(self) -> str:
        return f"{self.status}: {self.body[:500].decode(errors='replace').strip()}"


class Exchange:
    """Regent's exchange, for the job of one token.

    Args:
        url: ``http://HOST:PORT`` or ``https://HOST:PORT``.
        credentials: A folder with the file ``token``, and ``ca.crt`` if the exchange has an
            authority of its own.
        patience_s: Seconds for which each request is tried.
        pause: Waits some seconds.

    Raises:
        ExchangeError: There is no token, or the URL is none.
    """

    def __init__(
        self,
        url: str,
        credentials: Path,
        *,
        patience_s: float = _PATIENCE_S,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ExchangeError(f"{url!r} is no URL of an exchange, such as http://regent:8090")
        self._url = url
        self._host: str = parts.hostname
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        try:
            self._token = (credentials / "token").read_text("ascii").strip()
            authorities = credentials / "ca.crt"
            self._tls = None
            if parts.scheme == "https":
                file = str(authorities) if authorities.exists() else None
                self._tls = ssl.create_default_context(cafile=file)
        except (OSError, ValueError) as error:
            raise ExchangeError(f"the credentials for {url} cannot be used: {error}") from error
        self._patience_s = patience_s
        self._pause = pause

    def task(self) -> list[str]:
        """The options of ``regent plan``."""
        body = self._request("GET", "/v1/task")
        try:
            options = json.loads(body)
        except ValueError as error:
            raise ExchangeError(f"{self._url}/v1/task is no JSON: {error}") from error
        if not isinstance(options, list) or not all(isinstance(each, str) for each in options):
            raise ExchangeError(f"{self._url}/v1/task is no array of strings")
        return options

    def snapshot(self) -> bytes:
        """The snapshot, as JSON."""
        return self._request("GET", "/v1/snapshot")

    def hand_in(self, status: int, body: bytes) -> None:
        """Hand in what the planner has said, with its exit status. That it was handed in already is
        no error: the confirmation may have been lost."""
        self._request("PUT", "/v1/answer", body, {STATUS_HEADER: str(status)})

    def _request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        until = time.monotonic() + self._patience_s
        while True:
            problems: list[str] = []
            for address in self._addresses(problems):
                try:
                    answer = self._send(address, method, path, body, headers or {})
                except (OSError, http.client.HTTPException) as error:
                    problems.append(f"{address[0]}: {str(error) or type(error).__name__}")
                    continue
                if answer.status < HTTPStatus.MULTIPLE_CHOICES:
                    return answer.body
                if method == "PUT" and answer.status == HTTPStatus.CONFLICT:
                    return b""
                if answer.status not in _ELSEWHERE:
                    raise ExchangeError(f"{method} {self._url}{path}: {answer.text}")
                problems.append(f"{address[0]}: {answer.text}")
            said = f"{method} {self._url}{path}: {'; '.join(problems)}"
            if time.monotonic() >= until:
                raise ExchangeError(f"{said}; given up after {self._patience_s:g} s")
            print(f"{said}; tried again", file=sys.stderr, flush=True)  # noqa: T201
            self._pause(_PAUSE_S)

    def _addresses(self, problems: list[str]) -> list[tuple[str, int]]:
        """All addresses of the exchange's name, now."""
        try:
            found = socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        except OSError as error:
            problems.append(f"{self._host}: {error}")
            return []
        return [(str(each[4][0]), int(each[4][1])) for each in found]

    def _send(
        self,
        address: tuple[str, int],
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
    ) -> _Answer:
        connection = _Connection(self._host, self._port, address, self._tls)
        try:
            own = {"Authorization": f"Bearer {self._token}", **headers}
            connection.request(method, path, body=body, headers=own)
            response = connection.getresponse()
            return _Answer(response.status, response.read())
        finally:
            connection.close()


class _Connection(http.client.HTTPConnection):
    """To one address of a name. A certificate has to be for the name."""

    def __init__(
        self, host: str, port: int, address: tuple[str, int], tls: ssl.SSLContext | None
    ) -> None:
        super().__init__(host, port, timeout=_TIMEOUT_S)
        self._address = address
        self._tls = tls

    def connect(self) -> None:
        connected = socket.create_connection(self._address, self.timeout)
        if self._tls is not None:
            connected = self._tls.wrap_socket(connected, server_hostname=self.host)
        self.sock = connected
