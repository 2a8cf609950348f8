"""The network as a round's flags want it: one fetcher in each worker process."""

from __future__ import annotations

import threading

from connectors.clock import SystemClock
from connectors.connect_to import ConnectTo
from connectors.dns import Resolver, parse_nameservers
from connectors.heap import return_large_blocks
from connectors.http import HttpFetcher
from connectors.limits import FetchLimits
from connectors.pacer import AddressPacer
from connectors.routes import AddressPolicy
from crawler.addresses import classify
from schemas.flags import CrawlFlags

PUBLIC_PORTS = frozenset({80, 443, 8080, 8443})


_shared: dict[CrawlFlags, HttpFetcher] = {}
_sharing = threading.Lock()


def shared_fetcher(flags: CrawlFlags) -> HttpFetcher:
    """Return this process's fetcher: shards of one worker share its caches and its turns at addresses.

    Made at the first call, and anew for other flags or when the last one was cut by a stop.
    """
    with _sharing:
        fetcher = _shared.get(flags)
        if fetcher is None or fetcher.stopped:
            _shared.clear()
            fetcher = _shared[flags] = open_fetcher(flags)
        return fetcher


def open_fetcher(flags: CrawlFlags) -> HttpFetcher:
    """Return a new fetcher; bad --nameservers or --connect_to raise ValueError with the value.

    Tells this process's heap to return what its threads' large bodies took.
    """
    return_large_blocks()
    return HttpFetcher(
        user_agent=flags.user_agent,
        contact=flags.contact,
        resolver=Resolver(SystemClock(), parse_nameservers(flags.nameservers)),
        policy=AddressPolicy(
            verdict=classify,
            allow_private=flags.allow_private_addresses,
            require_contact=True,
            allowed_ports=PUBLIC_PORTS,
        ),
        limits=FetchLimits(
            connect_timeout_seconds=flags.connect_timeout_seconds,
            read_timeout_seconds=flags.read_timeout_seconds,
            fetch_timeout_seconds=flags.fetch_timeout_seconds,
            max_body_bytes=flags.max_body_bytes,
        ),
        connect_to=ConnectTo.parse(flags.connect_to),
        pacer=AddressPacer(flags.min_ip_delay_seconds, SystemClock(), exempt_addresses(flags)),
    )


def exempt_addresses(flags: CrawlFlags) -> frozenset[str]:
    """Return the addresses that --connect_to rules name: the pause per address does not apply to them."""
    rules = ConnectTo.parse(flags.connect_to).rules
    return frozenset(rule.address for rule in rules if rule.address)
