"""Why a URL was, or was not, fetched: everything that a crawl's files tell of it, as one document.

Reads the URL's partition and the pages on the chain that led to it, never the whole crawl. Imports no Beam.
"""

from __future__ import annotations

from typing import Any

from connectors.calendar_lookup import Standing
from connectors.rounds import CrawlFolder
from connectors.sweep import KEPT_MANIFESTS
from crawler.recrawl import RecrawlPolicy
from crawler.rewriting import changes
from crawler.urls import (
    NormalUrl,
    UrlRejection,
    authority_of,
    host_of,
    normalise,
    path_of,
    registered_domain,
    surt_key,
)
from schemas.state import HostState, UrlStatus
from transforms.crawl_now import CrawlNow, instant
from transforms.decisions import ROBOTS, WARC_COLUMNS, Decisions
from transforms.next_visit import next_visit
from transforms.plan_inputs import PlanRow, plan_row, round_view
from transforms.revisits import recrawl_policy
from transforms.rules_now import operator_rules, refusal, robots_state, robots_verdict
from transforms.state_tables import HOSTS, known_hosts
from transforms.view import read_plan

MOST_LINKS = 1_000
_CAPTURE_MEMBERS = (
    *("round", "kind", "started_at", "fetch_status", "fetch_redirect"),
    *("content_digest", "content_truncated", *WARC_COLUMNS),
)


def explain(folder: CrawlFolder, given: str, now: float) -> dict[str, Any]:
    """Return what the crawl knows of a URL, as the members of the contract and more (docs/outputs.md).

    ``given`` is any text; it is put into normal form first. ``now`` is UTC epoch seconds. Instants in the answer
    are datetimes. Raises CrawlFolderError for a folder that is no crawl, DamagedFile for a file of it that is.
    """
    crawl = CrawlNow(folder, now)
    normal = normalise(given)
    if isinstance(normal, UrlRejection):
        return _refused(given, normal)
    return _Explanation(crawl, given, normal).document()


def _refused(given: str, rejection: UrlRejection) -> dict[str, Any]:
    return {
        "url": None,
        "given": given,
        "changes": [],
        "known": False,
        "outcome": None,
        "reason": rejection.reason,
        "discovered_from": None,
        "chain": [],
        "found": None,
        "keys": None,
        "rounds": [],
        "captures": [],
        "duplicate_chain": [],
        "next_fetch_at": None,
        "next": None,
        "robots": None,
        "policy": {},
        "admission": {"admitted": False, "reason": rejection.reason},
    }


class _Explanation:
    """One URL and all that is found about it."""

    def __init__(self, crawl: CrawlNow, given: str, normal: NormalUrl) -> None:
        self.crawl, self.given, self.url = crawl, given, normal.url
        self.host = host_of(self.url)
        self.host_key, self.url_key = crawl.keys_of(self.url)
        self.partition = crawl.partition(self.url)
        self.decisions = Decisions(crawl)
        self.standing = crawl.find(self.url)
        self.plans = self._plan_rows()
        self.refusal = refusal(crawl, self.url, self.standing, self._is_known())

    def document(self) -> dict[str, Any]:
        """Return the answer."""
        rounds = self._rounds()
        newest = next((row for row in reversed(rounds) if row["committed"] and row["outcome"]), None)
        left_out = self._left_out()
        outcome, reason = (
            (newest["outcome"], newest["reason"]) if newest else (None, self._waits_for(left_out))
        )
        chain = self._chain()
        return {
            "url": self.url,
            "given": self.given,
            "changes": list(changes(self.given, self.url)),
            "known": self._is_known(),
            "outcome": outcome,
            "reason": reason,
            "discovered_from": chain[0] if chain else None,
            "chain": chain,
            "found": self._found(),
            "keys": self._keys(),
            "rounds": rounds,
            "captures": [
                {name: row[name] for name in _CAPTURE_MEMBERS} for row in rounds if row.get("warc_filename")
            ],
            "duplicate_chain": self._duplicate_chain(),
            "next_fetch_at": instant(self.standing.state.next_fetch_at) if self.standing else None,
            "next": self._next(left_out, rounds),
            "robots": robots_verdict(self.crawl, self.url),
            "policy": operator_rules(self.crawl, self.host),
            "admission": {"admitted": self.refusal is None, "reason": self.refusal},
        }

    def _is_known(self) -> bool:
        return self.standing is not None or self._seed_file() is not None or bool(self.plans)

    def _seed_file(self) -> str | None:
        return self.crawl.waiting_seeds.get(self.url)

    def _keys(self) -> dict[str, Any]:
        return {
            "host": self.host,
            "registered_domain": registered_domain(self.host),
            "authority": authority_of(self.url),
            "url_surtkey": surt_key(self.url),
            "partition": self.partition,
            "host_key": f"{self.host_key:016x}",
            "url_key": f"{self.url_key:016x}",
        }

    def _plan_rows(self) -> dict[int, PlanRow]:
        """Return what the plans that are still there made of the URL, by round."""
        numbers = set(range(max(1, self.crawl.newest + 1 - KEPT_MANIFESTS), self.crawl.newest + 1))
        if self.crawl.unfinished is not None:
            numbers.add(self.crawl.newest + 1)
        rows = {number: plan_row(self.crawl, number, self.url) for number in sorted(numbers)}
        return {number: row for number, row in rows.items() if row is not None}

    def _rounds(self) -> list[dict[str, Any]]:
        """Return the decision of every round that looked at the URL, oldest first."""
        decided = self._decided()
        rounds = [row | self._plan_members(row["round"]) for row in decided]
        for number in self.plans.keys() - {row["round"] for row in decided}:
            verdict = self.plans[number].verdict
            rounds.append(
                {
                    "round": number,
                    "committed": number <= self.crawl.newest,
                    "outcome": None,
                    "reason": "planned" if verdict == "selected" else verdict,
                    **self._plan_members(number),
                }
            )
        return sorted(rounds, key=lambda row: row["round"])

    def _decided(self) -> list[dict[str, Any]]:
        if self.standing is not None:
            decided = self.decisions.of(self.url, self.standing.state.discovered_round)
        else:
            is_robots = path_of(self.url) == "/robots.txt"
            decided = self.decisions.of(self.url, 1, (ROBOTS,)) if is_robots else []
        if self.crawl.unfinished is not None:
            decided += self.decisions.unfinished(self.crawl.unfinished, self.url)
        return decided

    def _plan_members(self, number: int) -> dict[str, Any]:
        row = self.plans.get(number)
        return {"plan": None if row is None else row.inputs}

    def _left_out(self) -> str | None:
        """Return which budget keeps the URL in the backlog; None where it is not there, or nothing tells."""
        if self.standing is None or not self.standing.slot.tier:
            return None
        row = self.plans.get(self.standing.dealt_in)
        if row is not None:
            return row.verdict
        reasons = sorted(self.crawl.folder.read_manifest(self.standing.dealt_in).left_out)
        return reasons[0] if len(reasons) == 1 else None

    def _waits_for(self, left_out: str | None) -> str | None:
        """Return why a URL has no outcome yet; for an unknown one, the rule that would refuse it."""
        in_hand = self.plans.get(self.crawl.newest + 1)
        if in_hand is not None:
            return "planned" if in_hand.verdict == "selected" else in_hand.verdict
        if self.standing is None:
            return "injected" if self._seed_file() is not None else self.refusal
        if self.standing.slot.tier:
            return left_out or "left_out"
        return "due" if self.standing.state.next_fetch_at <= self.crawl.now else "not_due"

    def _chain(self) -> list[str]:
        """Return the pages that led here: the one that named the URL first, then its own, back to a seed."""
        chain: list[str] = []
        standing = self.standing
        while standing is not None and standing.state.discovered_from is not None and len(chain) < MOST_LINKS:
            source = standing.state.discovered_from
            if source in chain:
                break
            chain.append(source)
            standing = self.crawl.find(source)
        return chain

    def _found(self) -> dict[str, Any] | None:
        if self.standing is None:
            path = self._seed_file()
            return None if path is None else {"is_seed": True, "injected_in": path}
        state = self.standing.state
        return {
            "is_seed": state.discovered_from is None,
            "round": state.discovered_round,
            "at": instant(state.discovered_at),
            "depth": state.depth,
            "priority": state.priority,
            "inlink_domains": state.inlink_domains,
        }

    def _duplicate_chain(self) -> list[dict[str, Any]]:
        """Return the page that was kept instead, and what became of that one, if it lost to another since."""
        chain: list[dict[str, Any]] = []
        standing = self.standing
        while (kept := _lost_to(standing)) is not None and kept not in {link["url"] for link in chain}:
            standing = self.crawl.find(kept)
            state = standing.state if standing else None
            chain.append(
                {"url": kept, "status": state and state.status, "in_pages": bool(state and state.in_pages)}
            )
        return chain

    def _recrawl_policy(self, rounds: list[dict[str, Any]]) -> RecrawlPolicy:
        """Return the bounds and the price of a visit in the round that set the date; today's if none did."""
        dated = [
            row["round"] for row in rounds if row["committed"] and row["outcome"] not in (None, "deferred")
        ]
        plan = read_plan(self.crawl.folder, dated[-1]) if dated else None
        return recrawl_policy(self.crawl if plan is None else round_view(self.crawl, plan))

    def _next(self, left_out: str | None, rounds: list[dict[str, Any]]) -> dict[str, Any] | None:
        if self.standing is None:
            return None
        entries = self.crawl.entries(HOSTS.name, self.partition)
        hosts: dict[int, HostState] = known_hosts(self.crawl.storage, entries, [self.host_key])
        policy, robots = self._recrawl_policy(rounds), robots_state(self.crawl, self.url)
        return next_visit(self.standing, policy, self.crawl.now, left_out, robots, hosts.get(self.host_key))


def _lost_to(standing: Standing | None) -> str | None:
    """Return the page that a URL lost to, None for one that is no duplicate."""
    if standing is None or standing.state.status != UrlStatus.DUPLICATE:
        return None
    return standing.state.duplicate_of
