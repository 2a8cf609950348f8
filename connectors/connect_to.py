"""Rules that send connections elsewhere, in curl's --connect-to syntax."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import NamedTuple


class ConnectTarget(NamedTuple):
    """Where to connect instead. ``named`` tells whether a rule gives the address itself."""

    address: str
    port: int
    named: bool = True


class ConnectRule(NamedTuple):
    """One rule HOST:PORT:ADDRESS:PORT; '' and None mean any (left) or unchanged (right)."""

    host: str
    port: int | None
    address: str
    address_port: int | None


class ConnectTo:
    """The rules of one crawl; the first that fits a host and port applies."""

    def __init__(self, rules: Iterable[ConnectRule] = ()) -> None:
        self.rules = tuple(rules)

    @classmethod
    def parse(cls, texts: Iterable[str]) -> ConnectTo:
        """Return the rules written in ``texts``; ValueError names the first faulty one and what is wrong."""
        return cls(parse_rule(text) for text in texts)

    def lookup(self, host: str, port: int) -> ConnectTarget | None:
        """Return where a connection to ``host`` and ``port`` goes instead, or None when no rule fits."""
        wanted = host.lower().strip("[]")
        for rule in self.rules:
            if rule.host in ("", wanted) and rule.port in (None, port):
                return ConnectTarget(
                    rule.address or wanted,
                    rule.address_port or port,
                    bool(rule.address),
                )
        return None

    @property
    def pins_every_host(self) -> bool:
        """Whether a rule with an empty HOST and PORT gives every connection an address."""
        return any(not rule.host and rule.port is None and rule.address for rule in self.rules)


def parse_rule(text: str) -> ConnectRule:
    """Return the rule in ``text``: HOST:PORT:ADDRESS:PORT, IPv6 addresses in brackets, any part may be empty.

    >>> parse_rule("example.org:443:[::1]:8443")
    ConnectRule(host='example.org', port=443, address='::1', address_port=8443)
    """
    parts = _split(text)
    if len(parts) != 4:
        raise ValueError(f"connect_to must be HOST:PORT:ADDRESS:PORT, got {text!r}")
    host, port, address, address_port = parts
    return ConnectRule(_host(host, text), _port(port, text), _host(address, text), _port(address_port, text))


def _split(text: str) -> list[str]:
    parts = [""]
    bracket = False
    for character in text.strip():
        if character == ":" and not bracket:
            parts.append("")
            continue
        bracket = character == "[" or (bracket and character != "]")
        parts[-1] += character
    return parts


def _host(part: str, text: str) -> str:
    if part.startswith("[") or part.endswith("]"):
        try:
            return str(ipaddress.IPv6Address(part.removeprefix("[").removesuffix("]")))
        except ValueError as error:
            raise ValueError(f"connect_to {text!r}: {part!r} is no IPv6 address in brackets") from error
    if any(not character.isprintable() or character in " /@?#" for character in part):
        raise ValueError(f"connect_to {text!r}: {part!r} is no host name or address")
    return part.lower()


def _port(part: str, text: str) -> int | None:
    if not part:
        return None
    if not (part.isascii() and part.isdigit() and 1 <= int(part) <= 65535):
        raise ValueError(f"connect_to {text!r}: {part!r} is no port (1 to 65535)")
    return int(part)
