"""How much of many robots.txt files one shard keeps at hand: a crawl must not drown in rules."""

from __future__ import annotations

from collections import OrderedDict

from crawler.robots import RobotsRules

PARSED_BYTES = 4 * 1024 * 1024
PARSED_FILES = 2048

LARGE_BYTES = 16 * 1024
MOST_LARGE_BYTES = 32 * 1024 * 1024
"""Files above LARGE_BYTES share this much; below it, their number is the number of hosts."""

HUGE_BYTES = 100 * 1024
MOST_HUGE_BYTES = 4 * 1024 * 1024
"""Files above HUGE_BYTES share this much. All of them stay parsed, for reading one takes up to half a second."""


class ParsedRules:
    """The parsed rules of the files used last: up to PARSED_BYTES of files, which take 40 times as much parsed."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._rules: OrderedDict[bytes, RobotsRules] = OrderedDict()
        self._bytes = 0

    def of(self, body: bytes) -> RobotsRules:
        """Return the rules of a file."""
        rules = self._rules.get(body)
        if rules is not None:
            self._rules.move_to_end(body)
            return rules
        rules = self._rules[body] = RobotsRules(body, self._agent)
        self._bytes += len(body)
        while len(self._rules) > 1 and (self._bytes > PARSED_BYTES or len(self._rules) > PARSED_FILES):
            self._bytes -= len(self._rules.popitem(last=False)[0])
        return rules


class RobotsRoom:
    """Grants files their room in memory, first come, first served."""

    def __init__(self) -> None:
        self._large = self._huge = 0

    def grants(self, size: int) -> bool:
        """Return whether a file of ``size`` bytes may be kept; if so, its room is taken."""
        large = size if size > LARGE_BYTES else 0
        huge = size if size > HUGE_BYTES else 0
        if self._large + large > MOST_LARGE_BYTES or self._huge + huge > MOST_HUGE_BYTES:
            return not large
        self._large += large
        self._huge += huge
        return True

    def returned(self, size: int) -> None:
        """Take the room of a file back that is no longer kept."""
        self._large -= size if size > LARGE_BYTES else 0
        self._huge -= size if size > HUGE_BYTES else 0
