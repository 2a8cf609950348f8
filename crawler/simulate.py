"""A shard's session on a virtual clock: how long it will take, and who decides it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from heapq import heappop, heappush
from typing import NamedTuple

from crawler.session import ShardSession
from crawler.visit import ROBOTS, Ask, Finished, Reply, Settled, Wait
from schemas.fetch import OutcomeRow

Answer = Callable[[Ask, float], Reply]


class Simulation(NamedTuple):
    """What a run on the virtual clock came to. Instants are on the clock that it was started with.

    ``pages`` counts the requests to each host but those for robots.txt.
    """

    finished_at: float
    host_finished_at: dict[str, float]
    asked: int
    pages: Counter[str]
    rows: list[OutcomeRow]


def steady(latency_of: Callable[[str], float], robots_status: int = 404) -> Answer:
    """Return a web in which every page of a host answers 200 after that host's latency, in seconds."""

    def answer(ask: Ask, now: float) -> Reply:
        status = robots_status if ask.kind == ROBOTS else 200
        return Reply(now, now + latency_of(ask.host), status=status)

    return answer


def simulate(
    session: ShardSession, now: float, workers: int, answer: Answer, keep_rows: bool = True
) -> Simulation:
    """Return what becomes of a session that starts at ``now`` with ``workers`` requests in hand at most.

    ``answer`` gives the reply to a request that starts at an instant; its ``finished_at`` says when it
    ends. Takes no time but its own; the session makes the same decisions as on a real clock.
    """
    flights: list[tuple[float, int, Reply, str]] = []
    rows: list[OutcomeRow] = []
    finished: dict[str, float] = {}
    pages: Counter[str] = Counter()
    asked = 0
    while True:
        action = session.next_action(now) if len(flights) < workers else Wait(None)
        if isinstance(action, Ask):
            reply = answer(action, now)
            heappush(flights, (reply.finished_at, action.ticket, reply, action.host))
            asked += 1
            pages[action.host] += action.kind != ROBOTS
        elif isinstance(action, Settled):
            rows.extend(action.rows if keep_rows else ())
        elif isinstance(action, Finished):
            return Simulation(max(finished.values(), default=now), finished, asked, pages, rows)
        elif flights and (action.until is None or flights[0][0] <= action.until):
            ended_at, ticket, reply, host = heappop(flights)
            now = max(now, ended_at)
            finished[host] = now
            made = session.finish(ticket, reply, now)
            rows.extend(made if keep_rows else ())
        elif action.until is not None:
            now = max(now, action.until)
        else:
            raise RuntimeError("the session waits for a request, but none is in hand")
