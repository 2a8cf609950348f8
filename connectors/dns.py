"""Addresses of host names: cached answers, cached refusals, several name servers in turn."""

from __future__ import annotations

import ipaddress
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import dns.exception
import dns.name
import dns.nameserver
import dns.resolver

from connectors.clock import Clock
from connectors.fetchfault import clean_detail

LOOPBACK = ("127.0.0.1", "::1")
MOST_ADDRESSES = 8


class Addresses(NamedTuple):
    """The addresses of a host, IPv4 first; at least one."""

    addresses: tuple[str, ...]


class DnsFailure(NamedTuple):
    """No address: ``reason`` is dns_nxdomain (there is no such name) or dns_failure (nobody could say)."""

    reason: str
    detail: str


class Nameserver(NamedTuple):
    """One server to ask."""

    address: str
    port: int = 53


class DnsPolicy(NamedTuple):
    """How long to wait and to remember, in seconds.

    Answers are kept for their TTL within ``min_ttl`` and ``max_ttl``; refusals (NXDOMAIN, no address) for
    their SOA's negative TTL within ``min_negative`` and ``max_negative`` (RFC 2308); trouble for
    ``first_trouble``, doubled at each repetition up to ``max_trouble``.
    """

    query_timeout: float = 3.0
    lookup_timeout: float = 10.0
    min_ttl: float = 60.0
    max_ttl: float = 86_400.0
    min_negative: float = 300.0
    max_negative: float = 3_600.0
    first_trouble: float = 5.0
    max_trouble: float = 300.0
    cache_names: int = 100_000


class _Known(NamedTuple):
    answer: Addresses | DnsFailure
    until: float
    trouble: float = 0.0


def parse_nameservers(texts: Iterable[str]) -> tuple[Nameserver, ...]:
    """Return the servers of texts ``IP[:PORT],...`` (IPv6 with a port in brackets).

    ValueError names a bad one.
    """
    parts = (part.strip() for text in texts for part in text.split(","))
    return tuple(_nameserver(part) for part in parts if part)


def _nameserver(part: str) -> Nameserver:
    address, port = part, "53"
    if part.startswith("["):
        address, _, rest = part[1:].partition("]")
        port = rest.removeprefix(":") if rest else "53"
    elif part.count(":") == 1:
        address, _, port = part.partition(":")
    try:
        ipaddress.ip_address(address)
    except ValueError as error:
        raise ValueError(f"nameservers: {part!r} is not IP[:PORT]") from error
    if not (port.isascii() and port.isdigit() and 1 <= int(port) <= 65535):
        raise ValueError(f"nameservers: {part!r} has no port between 1 and 65535")
    return Nameserver(address, int(port))


class Resolver:
    """Looks host names up with dnspython, remembering what it learned. Safe for any number of threads.

    Addresses and ``localhost`` (RFC 6761 section 6.3) need no query. ``nameservers`` default to the
    system's.
    """

    def __init__(
        self,
        clock: Clock,
        nameservers: Sequence[Nameserver] = (),
        policy: DnsPolicy | None = None,
    ) -> None:
        self._clock = clock
        self._policy = policy or DnsPolicy()
        self._lock = threading.Lock()
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._library = _library(nameservers, self._policy)

    def resolve(self, host: str, timeout_seconds: float | None = None) -> Addresses | DnsFailure:
        """Return the addresses of ``host``, taking at most ``timeout_seconds`` (default: the policy's)."""
        name = host.lower().rstrip(".")
        if address := _literal(name):
            return Addresses((address,))
        if name == "localhost" or name.endswith(".localhost"):
            return Addresses(LOOPBACK)
        with self._lock:
            known = self._known.get(name)
            if known is not None and self._clock.monotonic() < known.until:
                self._known.move_to_end(name)
                return known.answer
        timeout = min(self._policy.lookup_timeout, timeout_seconds or self._policy.lookup_timeout)
        learned = self._ask(name, timeout, known.trouble if known else 0.0)
        with self._lock:
            self._known[name] = learned
            self._known.move_to_end(name)
            while len(self._known) > self._policy.cache_names:
                self._known.popitem(last=False)
        return learned.answer

    def _ask(self, name: str, timeout: float, trouble: float) -> _Known:
        policy = self._policy
        try:
            for kind in ("A", "AAAA"):
                answer = self._library.resolve(
                    name + ".", kind, lifetime=timeout, search=False, raise_on_no_answer=False
                )
                ttl = float(answer.chaining_result.minimum_ttl)
                if answer.rrset:
                    found = Addresses(tuple(record.address for record in answer.rrset)[:MOST_ADDRESSES])
                    return self._known_for(found, min(max(ttl, policy.min_ttl), policy.max_ttl))
            return self._refused(DnsFailure("dns_nxdomain", "the name has no address"), ttl)
        except dns.resolver.NXDOMAIN as error:
            return self._refused(
                DnsFailure("dns_nxdomain", "NXDOMAIN, the name does not exist"), _negative_ttl(error)
            )
        except (dns.name.LabelTooLong, dns.name.NameTooLong, dns.name.EmptyLabel, UnicodeError) as error:
            return self._refused(DnsFailure("dns_nxdomain", clean_detail(error)), policy.max_negative)
        except (dns.exception.DNSException, OSError) as error:
            wait = min(max(policy.first_trouble, 2 * trouble), policy.max_trouble)
            failure = DnsFailure("dns_failure", clean_detail(error))
            return self._known_for(failure, wait)._replace(trouble=wait)

    def _refused(self, failure: DnsFailure, ttl: float) -> _Known:
        return self._known_for(failure, min(max(ttl, self._policy.min_negative), self._policy.max_negative))

    def _known_for(self, answer: Addresses | DnsFailure, seconds: float) -> _Known:
        return _Known(answer, self._clock.monotonic() + seconds)


def _library(nameservers: Sequence[Nameserver], policy: DnsPolicy) -> dns.resolver.Resolver:
    try:
        library = dns.resolver.Resolver(configure=not nameservers)
    except dns.resolver.NoResolverConfiguration:
        # A machine without DNS can still crawl loopback and pinned addresses; names fail one by one.
        library = dns.resolver.Resolver(configure=False)
    if nameservers:
        library.nameservers = [dns.nameserver.Do53Nameserver(*server) for server in nameservers]
    library.rotate = True
    library.timeout = policy.query_timeout
    return library


def _negative_ttl(error: dns.resolver.NXDOMAIN) -> float:
    responses = error.kwargs.get("responses") or {}
    ttls = [
        min(rrset.ttl, record.minimum)
        for response in responses.values()
        for rrset in response.authority
        for record in rrset
        if hasattr(record, "minimum")
    ]
    return float(min(ttls, default=0))


def _literal(name: str) -> str | None:
    if "%" in name:
        return None
    try:
        return str(ipaddress.ip_address(name.strip("[]")))
    except ValueError:
        return None
