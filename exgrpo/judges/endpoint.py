"""A server that is asked over HTTP: retries, a rate limit, and errors that say what to mend.

The key comes from the environment alone. It goes into one header of a request and nowhere else: to
no file, no message and no other address (redirects are not followed).
"""

import http.client
import json
import os
import random
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

from exgrpo.errors import UserError
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

Found = TypeVar("Found")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


@dataclass(frozen=True)
class Patience:
    """timeout: seconds that one request may take. attempts: requests for one case at most.

    first_wait: seconds before the second attempt; doubled for each later one.
    """

    timeout: float = 300.0
    attempts: int = 6
    first_wait: float = 1.0


class Endpoint:
    """An address such as `http://127.0.0.1:8000/v1`, usable from many threads."""

    def __init__(
        self, address: str, per_minute: float | None = None, patience: Patience = Patience()
    ) -> None:
        """per_minute: requests a minute at most, retries included; None: as fast as it goes.

        Raises UserError when the address is none, or has a password in it.
        """
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UserError(
                f"--endpoint {address!r}: give an address like http://127.0.0.1:8000/v1."
            )
        if parts.username or parts.password or parts.query:
            raise UserError(
                f"--endpoint: keep secrets out of the address; the key goes into {KEY}."
            )
        self.address = address.rstrip("/")
        self._patience = patience
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
        attempt mends: a wrong key, model or address.
        """
        wait, reason = self._patience.first_wait, ""
        for attempt in range(self._patience.attempts):
            if attempt and self._closed.wait(_jittered(wait)):
                break
            wait = self._patience.first_wait * 2**attempt
            if self._closed.wait(self._limit.reserve()):
                break
            try:
                return read(self._post(path, body))
            except urllib.error.HTTPError as error:
                with error:
                    reason = self._refused(error)
                    wait = max(wait, _retry_after(error.headers.get("Retry-After")))
            except UnansweredError as error:
                reason = str(error)
            except (OSError, http.client.HTTPException) as error:
                reason = f"{type(error).__name__}: {getattr(error, 'reason', error)}"
        raise UnansweredError(reason or "stopped")

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        headers = {"Content-Type": "application/json", "User-Agent": "exgrpo"}
        if key := _key():
            headers["Authorization"] = f"Bearer {key}"
        request = urllib.request.Request(
            self.address + path, json.dumps(body).encode(), headers, method="POST"
        )
        with self._opener.open(request, timeout=self._patience.timeout) as reply:
            content = reply.read(_MOST_BYTES)
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise UnansweredError(f"the reply is no JSON: {content[:200]!r}") from error

    def _refused(self, error: urllib.error.HTTPError) -> str:
        """Why the server did not answer. Raises where asking the same again is of no use."""
        try:
            said = " ".join(error.read(2000).decode(errors="replace").split())[:300]
        except (OSError, http.client.HTTPException):
            said = ""
        if key := _key():
            said = said.replace(key, "***")
        reason = f"HTTP {error.code}{f': {said}' if said else ''}"
        if error.code in _FINAL or 300 <= error.code < 400:
            remedy = _FINAL.get(error.code, "it sends elsewhere. Give --endpoint the final address")
            raise UserError(f"{self.address}: {remedy} ({reason}).") from error
        if error.code not in _BUSY:
            raise UnansweredError(reason) from error
        return reason


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
