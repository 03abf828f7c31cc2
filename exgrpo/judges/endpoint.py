"""A server that is asked over HTTP: retries, a rate limit, and errors that say what to mend.

The key comes from the environment alone. It goes into one header of a request and nowhere else: to
no file, no message and no other address (redirects are not followed), not even where the server
repeats it.
"""

import http.client
import json
import os
import random
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

from exgrpo.errors import UserError
from exgrpo.judges.background import begin
from exgrpo.judges.judge import UnansweredError

KEY = "EXGRPO_JUDGE_KEY"
_BUSY = (408, 409, 425, 429, 500, 502, 503, 504, 529)  # asked again, it may answer
_FINAL = {
    401: f"the key is missing or wrong. Put the right one into the environment variable {KEY}",
    403: f"the key in {KEY} may not do this. Use another key or model",
    404: "there is no such model or address. Check --model, and that --endpoint ends as the server "
    "says, often in /v1",
}
_LONGEST_WAIT = 120.0  # seconds, whatever a server asks for
_MOST_BYTES = 16 * 2**20  # of one reply
_SHORTEST_SECRET = 4  # characters; a shorter key is none, and stands in many words

Found = TypeVar("Found")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


@dataclass(frozen=True)
class Patience:
    """timeout: seconds that one request may take in all. attempts: requests for one case at most.

    first_wait: seconds before the second attempt; doubled for each later one.
    """

    timeout: float = 300.0
    attempts: int = 6
    first_wait: float = 1.0


class Endpoint:
    """An address such as `http://127.0.0.1:8000/v1`, usable from many threads."""

    def __init__(
        self,
        address: str,
        per_minute: float | None = None,
        patience: Patience = Patience(),
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """per_minute: requests a minute at most, retries included; None: as fast as it goes.

        `say` is told why the first request of all that fails is made again. Raises UserError when
        the address is none, or has a password in it.
        """
        _check_address(address)
        self.address = address.rstrip("/")
        self._patience = patience
        self._say = say
        self._said = self._reached = False
        self._limit = _RateLimit(60 / per_minute if per_minute else 0.0)
        self._closed = threading.Event()
        self._opener = urllib.request.build_opener(_NoRedirect)

    def close(self) -> None:
        """Let no further request begin; waiting ones end with UnansweredError."""
        self._closed.set()

    def ask(self, path: str, body: dict[str, Any], read: Callable[[Any], Found]) -> Found:
        """What `read` makes of the server's JSON answer.

        Asked again after a busy server, a lost connection, or an answer that `read` refuses by
        UnansweredError; that is raised after the last attempt. Raises UserError on what no further
        attempt mends: a wrong key, model or address, or a server that no request has reached yet.
        """
        wait, reason = self._patience.first_wait, ""
        for attempt in range(self._patience.attempts):
            if attempt:
                self._say_once(reason)
                if self._closed.wait(_jittered(wait)):
                    break
            wait = self._patience.first_wait * 2**attempt
            if self._closed.wait(self._limit.reserve()):
                break
            try:
                return read(self._answer(path, body))
            except urllib.error.HTTPError as error:
                self._reached = True
                reason = self._refused(error)
                wait = max(wait, _retry_after(error.headers.get("Retry-After")))
            except UnansweredError as error:
                reason = str(error)
            except TimeoutError:
                reason = f"no whole reply in {self._patience.timeout:g} seconds (--timeout)"
            except (OSError, http.client.HTTPException) as error:
                reason = _clean(f"{type(error).__name__}: {getattr(error, 'reason', error)}")
                if isinstance(error, urllib.error.URLError):
                    self._check_reached(error, reason)
        raise UnansweredError(reason or "stopped")

    def _answer(self, path: str, body: dict[str, Any]) -> Any:
        """The server's JSON, cleaned. A socket's time begins anew with each byte, so not that."""
        content = begin(self._post, path, body).result(self._patience.timeout)
        self._reached = True
        try:
            return _clean(json.loads(content))
        except (ValueError, RecursionError) as error:
            shown = _clean(content.decode(errors="replace"))[:200]
            raise UnansweredError(f"the reply is no JSON: {shown!r}") from error

    def _post(self, path: str, body: dict[str, Any]) -> bytes:
        headers = {"Content-Type": "application/json", "User-Agent": "exgrpo"}
        if key := _key():
            headers["Authorization"] = f"Bearer {key}"
        request = urllib.request.Request(
            self.address + path, json.dumps(body).encode(), headers, method="POST"
        )
        with self._opener.open(request, timeout=self._patience.timeout) as reply:
            return bytes(reply.read(_MOST_BYTES))

    def _say_once(self, reason: str) -> None:
        if not self._said and not self._closed.is_set():
            self._said = True
            self._say(f"asking again, {self._patience.attempts} times at most: {reason}")

    def _check_reached(self, error: urllib.error.URLError, reason: str) -> None:
        """UserError where nothing was reached ever, unless time alone ran out."""
        if not self._reached and not isinstance(error.reason, TimeoutError):
            raise UserError(
                f"{self.address}: cannot be reached: {reason}. Start the server, or mend "
                f"--endpoint."
            ) from error

    def _refused(self, error: urllib.error.HTTPError) -> str:
        """Why the server did not answer. Raises where asking the same again is of no use."""
        try:
            content = begin(_read_whole, error).result(self._patience.timeout)
        except (OSError, http.client.HTTPException):
            content = b""
        said = " ".join(_clean(content.decode(errors="replace")).split())[:300]
        reason = f"HTTP {error.code}{f': {said}' if said else ''}"
        if error.code in _FINAL or 300 <= error.code < 400:
            remedy = _FINAL.get(error.code, "it sends elsewhere. Give --endpoint the final address")
            raise UserError(f"{self.address}: {remedy} ({reason}).") from error
        if error.code not in _BUSY:
            raise UnansweredError(reason) from error
        return reason


def _read_whole(error: urllib.error.HTTPError) -> bytes:
    """Its body. It is closed where it is read: closing elsewhere would wait for the reading."""
    with error:
        return bytes(error.read(_MOST_BYTES))


@dataclass
class _RateLimit:
    """Spaces the beginnings of requests evenly."""

    gap: float
    _next: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reserve(self) -> float:
        """Seconds to wait before the request that is reserved by this call."""
        with self._lock:
            now = time.monotonic()
            begin = max(now, self._next)
            self._next = begin + self.gap
        return begin - now


def _check_address(address: str) -> None:
    """UserError when no request can be sent there, or a secret may be in it."""
    if "@" in address.partition("://")[2].partition("/")[0] or set("?#") & set(address):
        raise UserError(f"--endpoint: keep secrets out of the address; the key goes into {KEY}.")
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
        host.encode("idna")  # ValueError where a name is no name
    except ValueError:
        parts, host, port = urlsplit(""), "", None
    http_like = parts.scheme in ("http", "https") and re.fullmatch("[!-~]+", address)
    if not http_like or not host or port == 0:
        raise UserError(
            f"--endpoint {address!r}: give an address like http://127.0.0.1:8000/v1, with a port "
            f"from 1 to 65535 and no spaces."
        )


def _clean(value: Any) -> Any:
    """What a server said without the key, and without halves of letters that no file can hold."""
    if isinstance(value, str):
        key, text = _key(), value.encode(errors="replace").decode()
        return text.replace(key, "***") if len(key) >= _SHORTEST_SECRET else text
    if isinstance(value, list):
        return [_clean(each) for each in value]
    if isinstance(value, dict):
        return {_clean(name): _clean(each) for name, each in value.items()}
    return value


def _key() -> str:
    """The key, empty where there is none. UserError, without it, when no header can hold it."""
    key = os.environ.get(KEY, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise UserError(f"{KEY}: holds a line break or a letter that no key has. Set it again.")
    return key


def _jittered(wait: float) -> float:
    """Between the wait and half as much again: many clients must not come back at once."""
    return min(wait, _LONGEST_WAIT) * random.uniform(1.0, 1.5)


def _retry_after(header: str | None) -> float:
    """Seconds that the server asks for; 0 where it says none (or a date, which few send)."""
    try:
        return max(0.0, float(header or 0))
    except ValueError:
        return 0.0
