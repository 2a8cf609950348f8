"""A real fetcher with short limits, allowed to speak to loopback."""

from __future__ import annotations

from typing import Any

from connectors.clock import SystemClock
from connectors.connect_to import ConnectTo
from connectors.dns import Resolver
from connectors.http import HttpFetcher
from connectors.limits import FetchLimits
from connectors.routes import AddressPolicy


def loopback_verdict(address: str) -> str | None:
    """Return why ``address`` is not public, as far as tests need it."""
    return "loopback" if address.startswith("127.") or address == "::1" else None


def make_fetcher(
    allow_private: bool = True,
    rules: tuple[str, ...] = (),
    contact: str | None = "https://bot.example/",
    ca_file: str | None = None,
    resolver: Any = None,
    verdict: Any = loopback_verdict,
    allowed_ports: Any = None,
    pacer: Any = None,
    **limits: Any,
) -> HttpFetcher:
    """Return a fetcher for tests; ``limits`` override the short ones set here."""
    short = {
        "connect_timeout_seconds": 2.0,
        "read_timeout_seconds": 2.0,
        "fetch_timeout_seconds": 5.0,
        "max_body_bytes": 200_000,
    }
    return HttpFetcher(
        user_agent="testbot/1.0",
        contact=contact,
        resolver=resolver or Resolver(SystemClock()),
        policy=AddressPolicy(verdict, allow_private, allowed_ports=allowed_ports),
        limits=FetchLimits(**(short | limits)),
        connect_to=ConnectTo.parse(rules),
        ca_file=ca_file,
        pacer=pacer,
    )
