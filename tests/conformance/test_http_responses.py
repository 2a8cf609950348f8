"""Replies that other projects' tests send, each served from a real socket."""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping
from typing import Any

from schemas.fetch import Capture, FetchFailure, FetchRequest
from tests.fakes.fetching import make_fetcher
from tests.fakes.raw_server import RawServer, answers

LONE_LF_ENDS_A_LINE = {"ll040", "ll053"}
CHUNK_EXTENSIONS_ARE_NOT_READ = {"ll063", "ll071"}
ONLY_HTTP_1 = {"ll046", "ll060"}
SURPLUS_ONLY_CLOSES = {"ll005"}
ONE_REPLY_A_REQUEST = {"ll020"}
ON_PURPOSE = (
    LONE_LF_ENDS_A_LINE
    | CHUNK_EXTENSIONS_ARE_NOT_READ
    | ONLY_HTTP_1
    | SURPLUS_ONLY_CLOSES
    | ONE_REPLY_A_REQUEST
)
FETCH_SECONDS = 2.0


def raw_reply(case: Mapping[str, Any]) -> bytes:
    if case["src"] == "wpt_content_length":
        return b"HTTP/1.1 200 OK\r\n" + case["header"].encode() + b"\r\n\r\n" + b"x" * 42
    return base64.b64decode(case["raw_b64"])


def fetched(case: Mapping[str, Any]) -> Capture | FetchFailure:
    stays_open = str(case.get("then", "")).startswith("open")
    with RawServer(answers(raw_reply(case), then_hold=stays_open)) as server:
        fetcher = make_fetcher(read_timeout_seconds=0.3, fetch_timeout_seconds=FETCH_SECONDS)
        started = time.monotonic()
        outcome = fetcher.fetch(FetchRequest(server.url()))
        assert time.monotonic() - started < FETCH_SECONDS + 1
        fetcher.close()
    return outcome


def agrees(case: Mapping[str, Any], outcome: Capture | FetchFailure) -> bool:
    expected = case["expected"]
    if case["src"] == "wpt_content_length":
        return isinstance(outcome, FetchFailure) if expected is None else body_length(outcome) == expected
    if case["src"] == "llhttp":
        return agrees_with_llhttp(expected, outcome)
    if expected is None:
        return True
    if "upstream_error" in expected:
        return isinstance(outcome, FetchFailure) or outcome.truncated is not None
    if "body" in expected:
        return isinstance(outcome, Capture) and outcome.body == expected["body"].encode()
    return isinstance(outcome, Capture) and (outcome.truncated is None or case["raw_is_prefix"])


def agrees_with_llhttp(expected: Mapping[str, Any], outcome: Capture | FetchFailure) -> bool:
    if expected["error"] is not None:
        return isinstance(outcome, FetchFailure)
    names = [name for name, _ in outcome.response_headers] if isinstance(outcome, Capture) else []
    return (
        isinstance(outcome, Capture)
        and outcome.status == expected["statuses"][-1]
        and len(outcome.body) == expected["body_len"]
        and expected["headers"][-len(names) or len(expected["headers"]) :] == names
    )


def body_length(outcome: Capture | FetchFailure) -> int | None:
    return len(outcome.body) if isinstance(outcome, Capture) else None


def test_replies_differ_only_on_purpose(cases):
    rows = cases("http_responses")
    assert len(rows) >= 54
    outcomes = {case["id"]: (case, fetched(case)) for case in rows}
    differing = {name: got for name, (case, got) in outcomes.items() if not agrees(case, got)}
    assert set(differing) == ON_PURPOSE, differing


def test_no_reply_brings_control_characters_into_names_values_or_details(cases):
    for case in cases("http_responses"):
        outcome = fetched(case)
        if isinstance(outcome, FetchFailure):
            assert outcome.detail.isprintable()
        else:
            texts = [outcome.reason_phrase, *(text for pair in outcome.response_headers for text in pair)]
            assert not any(character < " " or character == "\x7f" for text in texts for character in text)
