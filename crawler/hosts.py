"""What a host name belongs to: registered domain, suffixes, and the columns an index keeps of it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from publicsuffixlist import PublicSuffixList

_SUFFIXES = PublicSuffixList(accept_unknown=True)
_ICANN_SUFFIXES = PublicSuffixList(accept_unknown=True, only_icann=True)
_LISTED_SUFFIXES = PublicSuffixList(accept_unknown=False, only_icann=True)
_IPV4 = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_NAME = re.compile(r"(?=.{1,253}$)(?:[a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}")


class HostColumns(NamedTuple):
    """Host columns of Common Crawl's columnar index, named there with the prefix ``url_host_``.

    ``registered_domain`` lies below the registry's suffix (``blogspot.com``), ``private_domain`` below the
    operator's (``me.blogspot.com``). Domains are None where the host is itself a suffix, and everything but
    ``name`` is None for an address.
    """

    name: str
    tld: str | None = None
    second_last_part: str | None = None
    third_last_part: str | None = None
    fourth_last_part: str | None = None
    fifth_last_part: str | None = None
    registry_suffix: str | None = None
    registered_domain: str | None = None
    private_suffix: str | None = None
    private_domain: str | None = None
    name_reversed: str | None = None


def is_address(host: str) -> bool:
    """Return whether the host of a normal URL is an IP address (IPv6 without brackets) rather than a name."""
    return ":" in host or _IPV4.fullmatch(host) is not None


def is_dns_name(host: str) -> bool:
    """Return whether DNS can be asked for the lower-case name.

    Labels of 1-63 letters, digits, hyphens and underscores, 253 characters in all: RFC 1035 section 2.3.4.
    The underscore is not allowed in host names by RFC 1123, but hosts have it.
    """
    return _NAME.fullmatch(host) is not None


@lru_cache(maxsize=65536)
def registered_domain(host: str) -> str:
    """Return the domain that someone registered, by the public suffix list with its private section.

    ``user.blogspot.com`` is one, for its pages are one person's. Addresses, single labels and hosts that are
    themselves a suffix return themselves.
    """
    if is_address(host):
        return host
    domain: str | None = _SUFFIXES.privatesuffix(host)
    return domain or host


def is_registry_suffix(host: str) -> bool:
    """Return whether the name is a suffix under which registries sell names, such as ``com`` or ``co.uk``.

    Names that the list does not know (``localhost``, ``test``) are not.
    """
    return bool(_LISTED_SUFFIXES.publicsuffix(host) == host)


@lru_cache(maxsize=16384)
def host_columns(host: str) -> HostColumns:
    """Return what Common Crawl's index says of a host of a normal URL; IPv6 addresses in brackets."""
    if is_address(host):
        return HostColumns(f"[{host}]" if ":" in host else host)
    labels = host.split(".")[::-1]
    tld, second, third, fourth, fifth = [*labels, None, None, None, None][:5]
    return HostColumns(
        host,
        tld,
        second,
        third,
        fourth,
        fifth,
        registry_suffix=_ICANN_SUFFIXES.publicsuffix(host),
        registered_domain=_ICANN_SUFFIXES.privatesuffix(host),
        private_suffix=_SUFFIXES.publicsuffix(host),
        private_domain=_SUFFIXES.privatesuffix(host),
        name_reversed=".".join(labels),
    )
