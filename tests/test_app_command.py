"""`exgrpo app`: this machine only unless told otherwise, and then with a warning; it ends clean."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from lake_fixture import DemoResults

from pipeline.dashboard import command, is_loopback

EXGRPO = str(Path(sys.executable).with_name("exgrpo"))
SOON = 60.0  # s; much longer than a start takes

# Put in place of `sitecustomize`: writes down whoever this process wants to reach.
LISTENING = """
import json, os, socket, sys
def seen(event, args):
    if event == "socket.getaddrinfo":
        host = args[0]
    elif event == "socket.connect" and isinstance(args[1], tuple):
        host = args[1][0]
    else:
        return
    with open(os.environ["SEEN"], "a") as file:
        file.write(json.dumps([event, str(host)]) + "\\n")
sys.addaudithook(seen)
"""
LOCAL = {"127.0.0.1", "::1", "localhost", "None", "0.0.0.0", "::"}


@pytest.mark.parametrize(
    ("address", "mine"),
    [
        *(
            (address, True)
            for address in ("127.0.0.1", "localhost", "LocalHost", "::1", "127.8.0.9")
        ),
        *(
            (address, False)
            for address in ("0.0.0.0", "::", "10.0.0.7", "fe80::1", "localhost.evil")
        ),
    ],
)
def test_what_only_this_machine_can_reach(address: str, mine: bool) -> None:
    assert is_loopback(address) is mine
    assert ("--server.allowedHosts=*" in command(address, 1)) is not mine
    for option in ("--server.enableXsrfProtection=true", "--server.enableCORS=true"):
        assert option in command(address, 1)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def started(
    results: Path, tmp_path: Path, *options: str
) -> Iterator[tuple[int, subprocess.Popen[str], Path]]:
    """The port, the process and what it wanted to reach; in a folder that is not the checkout."""
    path, elsewhere = tmp_path / "path", tmp_path / "elsewhere"
    path.mkdir()
    (path / "sitecustomize.py").write_text(LISTENING)
    for name in ("analysis", "app"):  # folders of these names where it is started do no harm
        (elsewhere / name).mkdir(parents=True)
        (elsewhere / name / "__init__.py").write_text("raise SystemExit('the wrong one')")
    port, seen = free_port(), tmp_path / "seen"
    seen.touch()
    server = subprocess.Popen(
        [EXGRPO, "app", "--results", str(results), "--port", str(port), *options],
        cwd=elsewhere,
        env=os.environ
        | {"PYTHONPATH": str(path), "SEEN": str(seen), "STREAMLIT_SERVER_HEADLESS": "true"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until(lambda: server.poll() is not None or healthy(port, options))
        yield port, server, seen
    finally:
        server.kill()
        server.wait()


def healthy(port: int, options: tuple[str, ...] = ()) -> bool:
    host = "[::1]" if "::1" in options else "127.0.0.1"
    try:
        urllib.request.urlopen(f"http://{host}:{port}/_stcore/health", timeout=1).close()
    except OSError:
        return False
    return True


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + SOON
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)


def handshake(port: int, host: str, origin: str) -> int:
    """The status of the answer to a WebSocket that a page of `origin` opens."""
    key = b64encode(os.urandom(16)).decode()
    with socket.create_connection(("127.0.0.1", port), timeout=SOON) as client:
        client.sendall(
            f"GET /_stcore/stream HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Key: {key}\r\n\r\n".encode()
        )
        return int(client.recv(4096).split()[1])


def test_strangers_are_refused_without_asking_the_internet(
    demo: DemoResults, tmp_path: Path
) -> None:
    with started(demo.results, tmp_path) as (port, server, seen):
        assert server.poll() is None
        addresses = {each.laddr.ip for each in listening(server.pid)}
        assert addresses == {"127.0.0.1"}
        here = f"127.0.0.1:{port}"
        assert handshake(port, here, f"http://{here}") == 101
        assert handshake(port, f"localhost:{port}", f"http://localhost:{port}") == 101
        assert handshake(port, here, "http://evil.example") == 403
        rebound = f"evil.example:{port}"  # a name of theirs that leads to this machine
        assert handshake(port, rebound, f"http://{rebound}") == 403
        hosts = {json.loads(line)[1] for line in seen.read_text().splitlines()}
        # 8.8.8.8: Streamlit opens a socket towards it to learn its own address, and sends nothing.
        assert hosts <= LOCAL | {"8.8.8.8"}
        server.send_signal(signal.SIGTERM)
        server.wait(SOON)
        assert "warning" not in (server.stderr.read() if server.stderr else "")


def listening(pid: int) -> list[Any]:
    return [each for each in psutil.Process(pid).net_connections() if each.status == "LISTEN"]


def test_an_open_address_is_warned_of(demo: DemoResults, tmp_path: Path) -> None:
    with started(demo.results, tmp_path, "--address", "0.0.0.0") as (port, server, _):
        name = f"lab.example:{port}"
        assert handshake(port, name, f"http://{name}") == 101
        assert handshake(port, name, "http://evil.example") == 403
        server.kill()
        said = server.stderr.read() if server.stderr else ""
    assert "0.0.0.0" in said and "no password" in said and "run SQL" in said


def test_the_loopback_of_ipv6_is_this_machine(demo: DemoResults, tmp_path: Path) -> None:
    try:
        with socket.socket(socket.AF_INET6) as trial:
            trial.bind(("::1", 0))
    except OSError:
        pytest.skip("needs IPv6")
    with started(demo.results, tmp_path, "--address", "::1") as (_, server, _):
        assert {each.laddr.ip for each in listening(server.pid)} == {"::1"}
        server.kill()
        assert "warning" not in (server.stderr.read() if server.stderr else "")
