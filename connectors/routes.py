"""From a URL's host and port to the addresses that may be connected to: rules, DNS, address policy."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from connectors.connect_to import ConnectTo
from connectors.dns import DnsFailure, Resolver
from connectors.fetchfault import FetchFault
from connectors.transport import Deadline, Target

AddressVerdict = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    """Which addresses may be asked.

    ``verdict`` names why an address is not public, or returns None for a public one. Non-public addresses are
    refused unless ``allow_private`` is set or a connect_to rule names the address. Public ones need a
    ``contact`` in the User-Agent when ``require_contact`` is set, and one of ``allowed_ports`` when given.
    """

    verdict: AddressVerdict
    allow_private: bool = False
    require_contact: bool = True
    allowed_ports: Collection[int] | None = None


class Routes:
    """Finds the checked targets of a URL. Safe for any number of threads."""

    def __init__(
        self, resolver: Resolver, connect_to: ConnectTo, policy: AddressPolicy, has_contact: bool
    ) -> None:
        self._resolver = resolver
        self._connect_to = connect_to
        self._policy = policy
        self._has_contact = has_contact

    def find(self, wanted: Target, deadline: Deadline) -> tuple[Target, ...]:
        """Return ``wanted`` once for each address that may stand for it, at least one.

        Every address is the very one a socket will use: nothing is looked up again. FetchFault reasons:
        dns_failure, private_address, no_contact, port_not_allowed.
        """
        rule = self._connect_to.lookup(wanted.host, wanted.port)
        name, port = (rule.address, rule.port) if rule else (wanted.host, wanted.port)
        found = self._resolver.resolve(name, deadline.left(float("inf")))
        if isinstance(found, DnsFailure):
            raise FetchFault("dns_failure", f"{name}: {found.detail}")
        faults = [self._fault(address, wanted.port, bool(rule and rule.named)) for address in found.addresses]
        allowed = [address for address, fault in zip(found.addresses, faults, strict=True) if fault is None]
        if not allowed:
            raise next(fault for fault in faults if fault)
        return tuple(wanted._replace(address=address, address_port=port) for address in allowed)

    def _fault(self, address: str, port: int, named: bool) -> FetchFault | None:
        policy = self._policy
        verdict = policy.verdict(address)
        if verdict is not None:
            if named or policy.allow_private:
                return None
            return FetchFault("private_address", f"{address}: {verdict}", address)
        if policy.require_contact and not self._has_contact:
            return FetchFault("no_contact", f"{address} is public and no contact is given", address)
        if not named and policy.allowed_ports is not None and port not in policy.allowed_ports:
            return FetchFault("port_not_allowed", f"port {port} of a public address", address)
        return None
