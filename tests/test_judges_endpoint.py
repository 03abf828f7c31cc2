"""One request of the judge `llm`: to a real server that is busy, slow, broken, or answers."""

from itertools import pairwise

import pytest

from exgrpo.errors import UserError
from exgrpo.judges.endpoint import KEY, Endpoint, Patience
from exgrpo.judges.judge import Judgement, UnansweredError
from tests.judge_server import CASE, SECRET, YES, Reply, judge_at, says, script, serving


def test_the_request_is_a_chat_completion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, SECRET)
    with serving(script(YES)) as server:
        found = judge_at(server).judge(CASE)
    assert found == Judgement(True, r"All steps hold. \boxed{yes}")
    (asked,) = server.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["Authorization"] == f"Bearer {SECRET}"
    assert asked.body["model"] == "tiny"
    assert asked.body["temperature"] == 0.0
    assert CASE.response in asked.body["messages"][0]["content"]


def test_without_a_key_none_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY, raising=False)
    with serving(script(YES)) as server:
        judge_at(server).judge(CASE)
    assert "Authorization" not in server.asked[0].headers


@pytest.mark.parametrize(
    "bad",
    [
        Reply(429),
        Reply(500, b"oops"),
        Reply(503),
        Reply(200, b"no json"),
        Reply(200, b'{"choices": []}'),
        Reply(200, b'{"choices": [{"message": {"content": 3}}]}'),
        Reply(200, seconds=1.0),  # over the time limit
        Reply(200, b" " * 100 + YES.content, drip=0.02),  # over it in all, never between two bytes
        Reply(500, b"busy " * 40, drip=0.02),
    ],
)
def test_what_may_heal_is_tried_again(bad: Reply) -> None:
    patience = Patience(timeout=0.3, attempts=4, first_wait=0.01)
    with serving(script(bad, bad, YES)) as server:
        assert judge_at(server, patience=patience).judge(CASE).valid is True
        assert len(server.asked) == 3


def test_a_server_that_asks_for_time_gets_it() -> None:
    with serving(script(Reply(429, headers={"Retry-After": "1"}), YES)) as server:
        judge_at(server).judge(CASE)
    first, second = (asked.at for asked in server.asked)
    assert 1.0 <= second - first < 2.5


def test_waits_grow() -> None:
    patience = Patience(timeout=2.0, attempts=4, first_wait=0.05)
    with serving(script(Reply(500))) as server, pytest.raises(UnansweredError, match="HTTP 500"):
        judge_at(server, patience=patience).judge(CASE)
    times = [asked.at for asked in server.asked]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert len(gaps) == 3
    assert all(gap >= 0.05 * 2**index for index, gap in enumerate(gaps))


def test_a_server_that_was_never_reached_is_told_at_once() -> None:
    with serving(script(YES)) as server:
        judge = judge_at(server, patience=Patience(first_wait=60))
    with pytest.raises(UserError, match=r"cannot be reached.*refused.*--endpoint"):
        judge.judge(CASE)


def test_a_server_that_went_away_is_waited_for() -> None:
    with serving(script(YES)) as server:
        judge = judge_at(server)
        judge.judge(CASE)
    server.server_close()
    with pytest.raises(UnansweredError, match="refused"):
        judge.judge(CASE)


def test_the_first_request_that_is_made_again_is_told_once() -> None:
    said: list[str] = []
    with serving(script(Reply(429, b"slow down"), Reply(503), YES)) as server:
        judge_at(server, say=said.append).judge(CASE)
    assert said == ["asking again, 4 times at most: HTTP 429: slow down"]


@pytest.mark.parametrize(
    "reply",
    [
        Reply(200, f"debug {SECRET}".encode()),
        Reply(200, b"-" * 195 + SECRET.encode()),  # the message is cut within it
        Reply(200, f'{{"error": "{SECRET}"}}'.encode()),
        Reply(200, b'{"error": "\\u0073k-very-secret"}'),
        Reply(200, f'{{"choices": [{{"message": {{"content": ["{SECRET}"]}}}}]}}'.encode()),
        Reply(400, b"x" * 295 + SECRET.encode()),
        Reply(500, b"x" * 1995 + SECRET.encode()),
        says(f"I was sent {SECRET}. \\boxed{{yes}}"),
        says(f"{SECRET}. {'x' * 480} \\boxed{{yes}}"),
    ],
)
def test_a_key_that_the_server_repeats_is_masked(
    reply: Reply, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, SECRET)
    said: list[str] = []
    with serving(script(reply)) as server:
        try:
            said.append(judge_at(server, say=said.append).judge(CASE).reason)
        except UnansweredError as error:
            said.append(str(error))
    assert said
    assert not [line for line in said if SECRET[:5] in line or SECRET[-5:] in line]


@pytest.mark.parametrize(
    ("status", "said"), [(401, KEY), (403, KEY), (404, "--model"), (307, "final address")]
)
def test_what_never_heals_stops_at_once(
    status: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, SECRET)
    content = f"bad key {SECRET}".encode()
    reply = Reply(status, content, {"Location": "http://127.0.0.1:9/elsewhere"})
    with serving(script(reply)) as server, pytest.raises(UserError, match=said) as error:
        judge_at(server).judge(CASE)
    assert len(server.asked) == 1
    assert SECRET not in str(error.value)


def test_a_refused_case_is_not_asked_again() -> None:
    with serving(script(Reply(400, b"too long"))) as server:
        with pytest.raises(UnansweredError, match="too long"):
            judge_at(server).judge(CASE)
        assert len(server.asked) == 1


@pytest.mark.parametrize("key", ["two\nlines", "naïve"])
def test_a_key_that_no_header_holds_is_told_without_it(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, key)
    with serving(script(YES)) as server, pytest.raises(UserError, match=KEY) as error:
        judge_at(server).judge(CASE)
    assert key not in str(error.value)


@pytest.mark.parametrize(
    "address",
    [
        *("", "localhost:8000", "ftp://a/b", "http://", "http://[::1/v1", "http://a:x/v1"),
        *("http://a:0/v1", "http://a:65536/v1", "http://a b/v1", "http://a/v 1", "http://a..b/v1"),
        *("http://a/ü", f"http://{'a' * 70}/v1", "http://a/v1\n"),
    ],
)
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(UserError, match="--endpoint"):
        Endpoint(address)


@pytest.mark.parametrize(
    "address",
    ["http://me:hidden@127.0.0.1/v1", "http://hidden@a:99999/v1", "http://[::1/v1?key=hidden"],
)
def test_no_secret_in_the_address(address: str) -> None:
    with pytest.raises(UserError, match=KEY) as error:
        Endpoint(address)
    assert "hidden" not in str(error.value)
