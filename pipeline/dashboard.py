"""Starts the dashboard: for this machine only, unless told otherwise."""

import os
import sys
from ipaddress import ip_address
from pathlib import Path

from analysis.limits import limit_memory

APP = Path(__file__).resolve().parents[1] / "app"
HERE = "127.0.0.1"
WARNING = """\
warning: anyone who can reach {address} port {port} can read every trajectory and run SQL on the
catalog: there is no password. For yourself alone, leave --address out and use `ssh -L`."""


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach the address; a name but `localhost` is taken as not."""
    if address.lower() == "localhost":
        return True
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


def command(address: str, port: int) -> list[str]:
    """What is run; what a user's own settings of Streamlit must not undo is said again."""
    options = [
        f"--server.address={address}",
        f"--server.port={port}",
        "--server.showEmailPrompt=false",
        "--server.enableCORS=true",
        "--server.enableXsrfProtection=true",
        "--browser.gatherUsageStats=false",
    ]
    if not is_loopback(address):
        options.append("--server.allowedHosts=*")  # its name is not known here
    return [sys.executable, str(APP / "serve.py"), "run", str(APP / "main.py"), *options]


def start(results: Path, address: str, port: int) -> None:
    """Become the dashboard. Does not return."""
    if not is_loopback(address):
        print(WARNING.format(address=address, port=port), file=sys.stderr, flush=True)
    os.environ["EXGRPO_RESULTS"] = str(results.resolve())
    run = command(address, port)
    limit_memory()  # it holds for the server, too
    os.execv(run[0], run)
