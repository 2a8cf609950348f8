"""A name server on loopback with a zone in memory, counting what it is asked."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from types import TracebackType

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset

from connectors.dns import Nameserver


class DnsServer:
    """Answers from ``records`` {(name, type): (ttl, value, ...)}; type ANY holds the word of an rcode, or SILENT,
    or GARBAGE.

    A list of such answers is given in turn, the last for ever. A name ``*.example.org`` stands for all below
    it that have no records of their own. Names that are not there are NXDOMAIN with an SOA whose negative TTL
    is ``negative_ttl``; names that have only other types get an empty answer. ``silent`` makes it swallow
    questions. ``asked`` counts questions by name and type.
    """

    def __init__(self, records: dict[tuple[str, str], tuple | list[tuple]], negative_ttl: int = 30) -> None:
        self.records = records
        self.negative_ttl = negative_ttl
        self.silent = False
        self.asked: Counter[tuple[str, str]] = Counter()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)

    @property
    def nameserver(self) -> Nameserver:
        """The address of this server."""
        return Nameserver(*self._socket.getsockname())

    def __enter__(self) -> DnsServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as waker:
            waker.sendto(b"", self._socket.getsockname())
        self._thread.join(10)
        self._socket.close()

    def _serve(self) -> None:
        while True:
            wire, sender = self._socket.recvfrom(4096)
            if not wire:
                return
            query = dns.message.from_wire(wire)
            name = query.question[0].name.to_text(omit_final_dot=True).lower()
            kind = dns.rdatatype.to_text(query.question[0].rdtype)
            self.asked[name, kind] += 1
            special = self._record(name, "ANY") or (0, "")
            if special[1] == "GARBAGE":
                self._socket.sendto(wire[:2] + bytes(range(256)), sender)
            elif not self.silent and special[1] != "SILENT":
                self._socket.sendto(self._reply(query, name, kind).to_wire(), sender)

    def _reply(self, query: dns.message.Message, name: str, kind: str) -> dns.message.Message:
        reply = dns.message.make_response(query)
        reply.flags |= dns.flags.RA
        if rcode := self._record(name, "ANY"):
            reply.set_rcode(dns.rcode.from_text(rcode[1]))
            return reply
        aliases: list[str] = []
        while (alias := self._record(name, "CNAME")) and name not in aliases:
            aliases.append(name)
            reply.answer.append(dns.rrset.from_text(name + ".", alias[0], "IN", "CNAME", alias[1] + "."))
            name = alias[1]
        if answer := self._record(name, kind):
            ttl, *values = answer
            reply.answer.append(dns.rrset.from_text(name + ".", ttl, "IN", kind, *values))
            return reply
        if not any(known in (name, _wildcard(name)) for known, _ in self.records):
            reply.set_rcode(dns.rcode.NXDOMAIN)
        soa = f"ns.example. root.example. 1 3600 600 86400 {self.negative_ttl}"
        reply.authority.append(dns.rrset.from_text("example.", 3600, "IN", "SOA", soa))
        return reply

    def _record(self, name: str, kind: str) -> tuple | None:
        own = any(known == name for known, _ in self.records)
        answer = self.records.get((name if own else _wildcard(name), kind))
        if isinstance(answer, list):
            return answer.pop(0) if len(answer) > 1 else answer[0]
        return answer


def _wildcard(name: str) -> str:
    return "*." + name.partition(".")[2]
