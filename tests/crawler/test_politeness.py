"""Delays, Retry-After and backoff: exact values, then laws."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.politeness import (
    PolitenessPolicy,
    backed_off,
    parse_retry_after,
    ready_at,
    recovered,
)
from schemas.state import HostState

HOST = HostState("a.example", 1, "a.example")
NOW = 1_800_000_000.0
DAY = 86_400.0


@pytest.mark.parametrize(
    ("crawl_delay", "latency", "minimum", "expected"),
    [
        (None, None, None, 5.0),
        (None, 0.1, None, 5.0),
        (None, 4.0, None, 8.0),
        (None, 100.0, None, 30.0),
        (10.0, 4.0, None, 10.0),
        (119.0, None, None, 119.0),
        (3600.0, None, None, 3600.0),
        (1.0, None, None, 5.0),
        (None, None, 0.0, 5.0),
        (None, 1.0, 0.0, 5.0),
        (None, 100.0, 60.0, 60.0),
    ],
)
def test_delay_is_the_largest_of_the_three(crawl_delay, latency, minimum, expected):
    assert PolitenessPolicy().delay_seconds(crawl_delay, latency, minimum) == expected


def test_zero_delay_is_allowed():
    policy = PolitenessPolicy(min_delay_seconds=0, latency_factor=0)
    assert policy.delay_seconds(latency_seconds=3.0) == 0.0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("min_delay_seconds", -1),
        ("latency_factor", -0.5),
        ("max_delay_seconds", float("nan")),
        ("max_crawl_delay_seconds", float("inf")),
        ("min_ip_delay_seconds", -1),
        ("backoff_jitter", 1.0),
        ("max_host_failures", 0),
        ("slow_host_urls", 0),
    ],
)
def test_a_bad_value_is_named(name, value):
    with pytest.raises(ValueError, match=name) as caught:
        PolitenessPolicy(**{name: value})
    assert str(value) in str(caught.value)


def test_crawl_delay_above_the_maximum_marks_a_slow_host():
    policy = PolitenessPolicy()
    assert not policy.is_slow_host(None)
    assert not policy.is_slow_host(120.0)
    assert policy.is_slow_host(120.5)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120.0),
        (" 0 ", 0.0),
        ("999999999999999999999999", DAY),
        ("Fri, 15 Jan 2027 08:01:00 GMT", 60.0),
        ("Friday, 15-Jan-27 08:01:00 GMT", 60.0),
        ("Fri Jan 15 08:01:00 2027", 60.0),
        ("Fri, 15 Jan 2027 09:01:00 +0100", 60.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("Fri, 15 Jan 2100 08:01:00 GMT", DAY),
    ],
)
def test_retry_after_is_an_instant(text, seconds):
    assert parse_retry_after(text, NOW) == NOW + seconds


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "soon",
        "-5",
        "1.5",
        "١٢",
        "Fri, 45 Jan 2027 99:01:00 GMT",
        "Fri, 15 Jan 99999 08:00:00 GMT",
        ",;",
    ],
)
def test_retry_after_that_says_nothing(text):
    assert parse_retry_after(text, NOW) is None


@given(st.text(max_size=40))
def test_retry_after_is_bounded_whatever_the_text(text):
    at = parse_retry_after(text, NOW)
    assert at is None or NOW <= at <= NOW + DAY


def test_backoff_doubles_from_a_minute_to_a_day():
    policy = PolitenessPolicy(backoff_jitter=0)
    pauses = [policy.backoff_seconds("a.example", count) for count in range(1, 14)]
    assert pauses[:4] == [60.0, 120.0, 240.0, 480.0]
    assert pauses[-1] == DAY


@given(st.text(min_size=1, max_size=20), st.integers(1, 2_000))
def test_backoff_stays_within_its_jitter(host, count):
    plain = PolitenessPolicy(backoff_jitter=0).backoff_seconds(host, count)
    varied = PolitenessPolicy().backoff_seconds(host, count)
    assert 0.9 * plain <= varied <= min(DAY, 1.1 * plain)
    assert varied == PolitenessPolicy().backoff_seconds(host, count)


def test_backoff_differs_between_hosts():
    policy = PolitenessPolicy()
    assert len({policy.backoff_seconds(f"h{i}.example", 1) for i in range(50)}) == 50


def test_retry_after_is_honoured_exactly_and_counts():
    state = backed_off(HOST, PolitenessPolicy(), NOW, NOW + 7)
    assert (state.not_before_at, state.backoff_count) == (NOW + 7, 1)
    again = backed_off(state, PolitenessPolicy(backoff_jitter=0), NOW, None)
    assert (again.not_before_at, again.backoff_count) == (NOW + 120, 2)


def test_a_longer_promise_stands():
    state = backed_off(HOST._replace(not_before_at=NOW + 900), PolitenessPolicy(), NOW, NOW + 1)
    assert state.not_before_at == NOW + 900


def test_recovery_clears_failures_and_backoff():
    state = HOST._replace(failures=3, backoff_count=2, not_before_at=NOW)
    assert recovered(state) == HOST
    assert recovered(HOST) is HOST


def test_ready_is_the_later_of_rest_and_promise():
    assert ready_at(HOST, 5.0) == 0.0
    assert ready_at(HOST._replace(last_fetch_at=NOW), 5.0) == NOW + 5
    assert ready_at(HOST._replace(last_fetch_at=NOW, not_before_at=NOW + 60), 5.0) == NOW + 60
