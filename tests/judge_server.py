"""A real HTTP server that answers as an OpenAI-compatible one does, well or badly."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from exgrpo.judges.endpoint import Endpoint, Patience
from exgrpo.judges.judge import Case, Judge
from exgrpo.judges.llm import Sampling, llm


@dataclass
class Reply:
    """What the server sends. seconds: how long it waits before. drip: seconds for each byte."""

    status: int = 200
    content: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    drip: float = 0.0


def says(text: str | None, finish: str = "stop", seconds: float = 0.0) -> Reply:
    """A chat completion with this text."""
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": finish}
    return Reply(content=json.dumps({"choices": [choice]}).encode(), seconds=seconds)


@dataclass
class Asked:
    """A request as it came in."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    at: float


class Server(ThreadingHTTPServer):
    """Each request is answered by `answer`; all of them are in `asked`."""

    daemon_threads = True

    def __init__(self, answer: Callable[[Asked], Reply]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.asked: list[Asked] = []
        self.lock = threading.Lock()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked = Asked(self.path, dict(self.headers), body, time.monotonic())
        with self.server.lock:
            self.server.asked.append(asked)
            reply = self.server.answer(asked)
        time.sleep(reply.seconds)
        try:
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.content)))
            self.end_headers()
            if reply.drip:
                for byte in reply.content:
                    self.wfile.write(bytes([byte]))
                    time.sleep(reply.drip)
            else:
                self.wfile.write(reply.content)
        except OSError:
            pass  # who asked has gone

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(answer: Callable[[Asked], Reply]) -> Iterator[Server]:
    with Server(answer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def script(*replies: Reply) -> Callable[[Asked], Reply]:
    """The replies in order, the last one for ever."""
    left = list(replies)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


CASE = Case("What is 3 + 5?", "8", r"3 + 5 = 8, so \boxed{8}")
YES = says(r"All steps hold. \boxed{yes}")
PATIENCE = Patience(timeout=2.0, attempts=4, first_wait=0.01)
SECRET = "sk-very-secret"


def judge_at(
    server: Server,
    per_minute: float | None = None,
    patience: Patience = PATIENCE,
    say: Callable[[str], None] = lambda _: None,
) -> Judge:
    return llm(Endpoint(server.address, per_minute, patience, say), "tiny", Sampling())
