"""Calls in threads that the end of the process does not wait for."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Found = TypeVar("Found")


def begin(call: Callable[Given, Found], *given: Given.args, **named: Given.kwargs) -> Future[Found]:
    """Call it in a thread of its own. Whoever no longer wants the result may forget it."""
    future: Future[Found] = Future()

    def run() -> None:
        try:
            future.set_result(call(*given, **named))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future
