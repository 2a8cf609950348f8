"""Which IP addresses a crawler may connect to: only those of the public internet."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import NamedTuple

_METADATA = frozenset(
    ip_address(text)
    for text in (
        "169.254.169.254",  # AWS, Google, Azure, Oracle, DigitalOcean and most others
        "169.254.170.2",  # AWS container credentials
        "169.254.170.23",  # AWS EKS pod identity
        "100.100.100.200",  # Alibaba
        "168.63.129.16",  # Azure's host agent, in public address space
        "192.0.0.192",  # Oracle, older
        "fd00:ec2::254",  # AWS
        "fd00:ec2::23",  # AWS EKS pod identity
        "fd20:ce::254",  # Google
    )
)

# IANA special-purpose address registries (RFC 6890 and its updates); the first match names the kind.
_IPV4_KINDS = [
    (IPv4Network(block), kind)
    for block, kind in (
        ("0.0.0.0/8", "this_network"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "carrier_nat"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link_local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "reserved"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "benchmarking"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("255.255.255.255/32", "broadcast"),
        ("240.0.0.0/4", "reserved"),
    )
]
_IPV6_KINDS = [
    (IPv6Network(block), kind)
    for block, kind in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("fc00::/7", "unique_local"),
        ("fe80::/10", "link_local"),
        ("fec0::/10", "site_local"),
        ("ff00::/8", "multicast"),
        ("2001:db8::/32", "documentation"),
        ("3fff::/20", "documentation"),
        ("2001:2::/48", "benchmarking"),
        ("2001::/23", "reserved"),
    )
]
_IPV6_GLOBAL = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
_TEREDO = IPv6Network("2001::/32")
_LAST_32 = 0xFFFFFFFF
_ISATAP = (0x00005EFE, 0x02005EFE)


class AddressVerdict(NamedTuple):
    """Whether a connection may go to an address; ``reason`` is private_address, ``kind`` says which sort."""

    public: bool
    reason: str | None = None
    kind: str | None = None


def is_public(ip: str) -> AddressVerdict:
    """Return the verdict on one address as DNS or a URL gave it; text that is no address is not public."""
    kind = classify(ip)
    return AddressVerdict(True) if kind is None else AddressVerdict(False, "private_address", kind)


@lru_cache(maxsize=16384)
def classify(ip: str) -> str | None:
    """Return the kind of an address that is not on the public internet, None for a public one.

    Kinds: cloud_metadata, loopback, private, carrier_nat (100.64/10), link_local, site_local, unique_local,
    multicast, broadcast, this_network (0/8), unspecified, documentation, benchmarking, reserved, and
    not_an_address for text that is none (fail closed). IPv6 addresses that carry an IPv4 address (mapped,
    NAT64, 6to4, Teredo, ISATAP) are judged by it as well; of the others only 2000::/3 is public, since no
    more is assigned. IPv4 is read as four decimals, as sockets write it: other spellings are for the URL
    parser to normalise.
    """
    try:
        address = ip_address(ip)
    except ValueError:
        return "not_an_address"
    if isinstance(address, IPv4Address):
        return _ipv4_kind(address)
    return _ipv6_kind(IPv6Address(int(address)))


def _ipv4_kind(address: IPv4Address) -> str | None:
    if address in _METADATA:
        return "cloud_metadata"
    return next((kind for block, kind in _IPV4_KINDS if address in block), None)


def _ipv6_kind(address: IPv6Address) -> str | None:
    if address in _METADATA:
        return "cloud_metadata"
    for carried in _carried(address):
        if (kind := _ipv4_kind(carried)) is not None:
            return kind
    if address.ipv4_mapped is not None or address in _NAT64 or address in _TEREDO:
        return None
    kind = next((kind for block, kind in _IPV6_KINDS if address in block), None)
    return kind if kind is not None or address in _IPV6_GLOBAL else "reserved"


def _carried(address: IPv6Address) -> list[IPv4Address]:
    """Return the IPv4 addresses inside: RFC 4291 mapped, 6052 NAT64, 3056 6to4, 4380 Teredo, 5214 ISATAP."""
    carried = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    number = int(address)
    if address in _NAT64 or number >> 32 & _LAST_32 in _ISATAP:
        carried.append(IPv4Address(number & _LAST_32))
    return [found for found in carried if found is not None]
