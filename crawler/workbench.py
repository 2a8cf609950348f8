"""Two banks of queues: whose turn it is, and which host may be asked now.

After Mercator (Heydon and Najork, 1999). The front bank holds one queue per priority level; a seeded
selector takes from a level at random, with a bias to the high ones. The back bank is bounded and each
of its queues serves ONE host. A heap holds back queues by the instant they may next be asked. A queue
taken from the heap is in exactly one worker's hands until the worker releases it, so no host is ever
asked twice at once, and never before its time: politeness is a property of the structure.
"""

from __future__ import annotations

from collections import deque
from hashlib import blake2b
from heapq import heappop, heappush
from math import ceil
from typing import Generic, NamedTuple, TypeVar

from crawler.lines import Line, most_in_line

Item = TypeVar("Item")

NAP_SECONDS = 60.0
"""A host that must rest longer than this keeps its timer but gives up its back queue."""


def queue_count(hosts: int, workers: int, delay_seconds: float, latency_seconds: float) -> int:
    """Return how many back queues keep ``workers`` busy: one is asked while the others rest.

    ``workers x (1 + delay / latency)`` and a quarter more, since with just the mean some worker idles whenever
    more hosts than usual rest; or the number of hosts, if that is smaller. Never under Mercator's three a
    worker.
    """
    busy = workers * (1.0 + delay_seconds / max(latency_seconds, 1e-3))
    return max(3 * workers, min(hosts, ceil(1.25 * busy)), 1)


class Grant(NamedTuple, Generic[Item]):
    """One item handed to one worker, with its host and the number of the back queue it came from."""

    host: str
    item: Item
    queue: int


class LevelSelector:
    """A seeded source of priority levels: each is half as likely as the one above, none impossible."""

    __slots__ = ("_state", "_weights")

    def __init__(self, levels: int, seed: str) -> None:
        self._weights = [1 << (levels - 1 - level) for level in range(levels)]
        self._state = int.from_bytes(blake2b(seed.encode(), digest_size=8).digest(), "big")

    def choose(self, levels: list[int]) -> int:
        """Return one of ``levels`` (0 is the highest), at random with a bias to the high ones."""
        if len(levels) == 1:
            return levels[0]
        # Knuth's MMIX generator; its high bits are the good ones.
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        weights = self._weights
        point = (self._state >> 32) * sum(weights[level] for level in levels) >> 32
        for level in levels:
            point -= weights[level]
            if point < 0:
                return level
        return levels[-1]


class _Queue(Generic[Item]):
    """A back queue: the one host it serves and that host's items."""

    __slots__ = ("held", "host", "items", "number")

    def __init__(self, number: int, host: str, items: deque[Item]) -> None:
        self.number = number
        self.host = host
        self.items = items
        self.held = False


class Workbench(Generic[Item]):
    """Hands out items of many hosts so that each host, and each address, is asked politely.

    Guarantees, whatever the order of calls: each item is handed out once (or returned by ``drain``);
    a host is in at most one pair of hands; it is not handed out before the instant its last
    ``release`` or ``rest`` named, whether or not its queue was emptied, reassigned or given up in
    between; two hosts of one address start at least ``ip_delay_seconds`` apart. Items of one level and
    one host come in the order they were added. Time never runs here: ``now`` must not decrease.
    Memory is the items, the bounded back bank, and one timer per host that rests.
    """

    def __init__(
        self, queues: int, *, levels: int = 4, seed: str = "", ip_delay_seconds: float = 0.0
    ) -> None:
        if queues < 1 or levels < 1:
            raise ValueError(f"queues and levels must be 1 or more, got {queues} and {levels}")
        self._select = LevelSelector(levels, seed).choose
        self._front: list[dict[str, deque[Item]]] = [{} for _ in range(levels)]
        self._free = list(range(queues, 0, -1))
        self._queue_of: dict[str, _Queue[Item]] = {}
        self._heap: list[tuple[float, int, _Queue[Item] | Line[_Queue[Item]]]] = []
        self._parked: dict[str, deque[Item]] = {}
        self._parked_heap: list[tuple[float, int, str]] = []
        self._rest_until: dict[str, float] = {}
        self._ip_delay = ip_delay_seconds
        self._ip_of: dict[str, str] = {}
        self._lines: dict[str, Line[_Queue[Item]]] = {}
        self._most_in_line = most_in_line(queues, ip_delay_seconds, NAP_SECONDS)
        self._booked: set[str] = set()
        self._sequence = 0
        self.waiting = 0
        """How many items wait, in either bank."""

    def add(self, host: str, item: Item, level: int = 0) -> None:
        """Put one item behind those of its host: into the host's back queue if it has one, else in front."""
        self.waiting += 1
        queue = self._queue_of.get(host)
        items = queue.items if queue is not None else self._parked.get(host)
        if items is None:
            front = self._front[level]
            items = front.get(host)
            if items is None:
                front[host] = deque((item,))
                return
        items.append(item)

    def add_first(self, host: str, item: Item) -> None:
        """Put one item before all that its host has in its back queue (robots.txt, a redirect's target).

        A host that has no back queue yet gets the item at the head of its highest level.
        """
        self.waiting += 1
        queue = self._queue_of.get(host)
        items = queue.items if queue is not None else self._parked.get(host)
        if items is None:
            items = self._front[0].setdefault(host, deque())
        items.appendleft(item)

    def rest(self, host: str, ready_at: float) -> None:
        """Ask the host no earlier than ``ready_at``: what is known of it from before it came here."""
        if host in self._queue_of or host in self._parked:
            raise ValueError(f"{host} has been handed out: name its next instant when it is released")
        if ready_at > self._rest_until.get(host, 0.0):
            self._rest_until[host] = ready_at

    def locate(self, host: str, ip: str | None) -> None:
        """Record the address of a host; None takes it out of its address's line."""
        if ip is None:
            self._ip_of.pop(host, None)
        else:
            self._ip_of[host] = ip

    def acquire(self, now: float) -> Grant[Item] | None:
        """Return an item of a host that may be asked now, or None.

        The host then belongs to the caller until ``release``. Resting hosts whose time has come go
        first, in order of their time; only when there is none is a new host given a free queue.
        """
        heap = self._heap
        while True:
            if heap and heap[0][0] <= now:
                queue = self._pop(now)
                if queue is None:
                    continue
                queue.held = True
                self.waiting -= 1
                return Grant(queue.host, queue.items.popleft(), queue.number)
            if not self._open_queue(now):
                return None

    def release(self, host: str, ready_at: float, now: float) -> None:
        """Give a host back after its download; it is not asked again before ``ready_at``."""
        queue = self._queue_of[host]
        if not queue.held:
            raise ValueError(f"{host} is in no one's hands: it was released twice")
        queue.held = False
        if ready_at - now > NAP_SECONDS:
            self._free_queue(queue)
            self._park(host, queue.items, ready_at)
        else:
            self._push(ready_at, queue)

    def drain(self, host: str) -> list[Item]:
        """Take away and return every waiting item of a host, first first. Its timer stays."""
        queue = self._queue_of.get(host)
        items = queue.items if queue is not None else self._parked.get(host, deque())
        taken = list(items)
        items.clear()
        for front in self._front:
            taken.extend(front.pop(host, ()))
        self.waiting -= len(taken)
        return taken

    def wake_at(self) -> float | None:
        """Return the instant at which ``acquire`` may next succeed, if nothing is released before it."""
        roots = [self._heap[0][0]] if self._heap else []
        if self._parked_heap and self._free:
            roots.append(self._parked_heap[0][0])
        return min(roots, default=None)

    def hosts(self) -> set[str]:
        """Return every host with an item that waits."""
        busy = {host for host, queue in self._queue_of.items() if queue.items}
        busy.update(host for host, items in self._parked.items() if items)
        for front in self._front:
            busy.update(host for host, items in front.items() if items)
        return busy

    def _push(self, at: float, entry: _Queue[Item] | Line[_Queue[Item]]) -> None:
        self._sequence += 1
        heappush(self._heap, (at, self._sequence, entry))

    def _pop(self, now: float) -> _Queue[Item] | None:
        """Take the root of the heap; return its queue if an item of it can be handed out now."""
        entry = heappop(self._heap)[2]
        if isinstance(entry, Line):
            return self._serve(entry, now)
        if not entry.items:
            # The cooldown is over and nothing came: only now may another host have the queue.
            self._free_queue(entry)
            return None
        if not self._ip_delay or (ip := self._ip_of.get(entry.host)) is None:
            return entry
        line = self._lines.setdefault(ip, Line())
        if entry.host not in self._booked and not line.has_room(self._most_in_line, now):
            # A crowd behind one address gives its back queues up to hosts of other addresses.
            self._booked.add(entry.host)
            self._free_queue(entry)
            self._park(entry.host, entry.items, line.book(self._ip_delay, now))
            return None
        self._booked.discard(entry.host)
        line.waiting.append(entry)
        return None if line.scheduled else self._serve(line, now)

    def _serve(self, line: Line[_Queue[Item]], now: float) -> _Queue[Item] | None:
        """Return the first queue of a line if its address may be asked now, and schedule the next."""
        line.scheduled = False
        granted = None
        while line.waiting and granted is None and line.free_at <= now:
            queue = line.waiting.popleft()
            if queue.items:
                granted = queue
                line.free_at = now + self._ip_delay
            else:
                self._free_queue(queue)
        if line.waiting:
            line.scheduled = True
            self._push(line.free_at, line)
        return granted

    def _open_queue(self, now: float) -> bool:
        """Give the next host a back queue; False when no queue is free or no host wants one."""
        if not self._free:
            return False
        while self._parked_heap and self._parked_heap[0][0] <= now:
            host = heappop(self._parked_heap)[2]
            items = self._parked.pop(host)
            if items:
                self._seat(host, items, now)
                return True
        levels = [level for level, front in enumerate(self._front) if front]
        if not levels:
            return False
        host = next(iter(self._front[self._select(levels)]))
        items = self._take_host(host)
        ready_at = self._rest_until.pop(host, 0.0)
        if ready_at - now > NAP_SECONDS:
            self._park(host, items, ready_at)
        elif items:
            self._seat(host, items, max(ready_at, now))
        return True

    def _take_host(self, host: str) -> deque[Item]:
        """Take all items of a host from the front bank, in the selector's order."""
        banks = {level: front.pop(host) for level, front in enumerate(self._front) if host in front}
        if len(banks) == 1:
            return next(iter(banks.values()))
        merged: deque[Item] = deque()
        while banks:
            level = self._select(list(banks))
            merged.append(banks[level].popleft())
            if not banks[level]:
                del banks[level]
        return merged

    def _seat(self, host: str, items: deque[Item], ready_at: float) -> None:
        queue = _Queue(self._free.pop(), host, items)
        self._queue_of[host] = queue
        self._push(ready_at, queue)

    def _free_queue(self, queue: _Queue[Item]) -> None:
        del self._queue_of[queue.host]
        self._free.append(queue.number)

    def _park(self, host: str, items: deque[Item], ready_at: float) -> None:
        self._parked[host] = items
        self._sequence += 1
        heappush(self._parked_heap, (ready_at, self._sequence, host))
