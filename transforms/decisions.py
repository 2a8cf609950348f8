"""What each round decided about one URL, from the rounds' own tables. Imports no Beam."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import numpy as np

from connectors import parts
from connectors.journal import Journal
from connectors.rows import table_to_rows
from crawler.robots import MAX_REDIRECTS
from crawler.urls import NormalUrl, authority_of, normalise, surt_key
from schemas.fetch import OutcomeRow
from schemas.round import RoundPlan
from transforms import records
from transforms.crawl_now import CrawlNow, instant

ROBOTS = "robots"
WARC_COLUMNS = ("subset", "warc_filename", "warc_record_offset", "warc_record_length")
_DECISION_COLUMNS = (
    *("kind", "outcome", "reason", "detail", "depth", "priority", "retries"),
    *("started_at", "finished_at", "fetch_millis", "ip", "fetch_status", "fetch_redirect"),
    *("host_delay_seconds", "robots_rule", "duplicate_of", "next_fetch_at"),
    *("content_digest", "content_mime_detected", "content_truncated"),
    *WARC_COLUMNS,
)
_ROBOTS_COLUMNS = ("outcome", "reason", "fetch_status", "fetch_redirect", "content_digest", *WARC_COLUMNS)
_NEVER_ASKED_ROBOTS = frozenset({"excluded"})
_BEFORE_ALL = datetime.min.replace(tzinfo=UTC)
MOST_ROUNDS_BACK = 400


class Decisions:
    """The rounds of a crawl as far as they are about single URLs. Reads only the URL's partition.

    Instants in members are datetimes in UTC; members are named after the columns they come from.
    """

    def __init__(self, crawl: CrawlNow) -> None:
        self.crawl = crawl
        self._rows = lru_cache(maxsize=4096)(self._read_rows)

    def of(self, url: str, since: int, kinds: tuple[str, ...] = ("planned", "hop")) -> list[dict[str, Any]]:
        """Return the decisions of committed rounds on a normal URL, from the round ``since`` on, oldest first."""
        found = []
        for number in range(max(1, since), self.crawl.newest + 1):
            for row in self._rows(number, url):
                if row["kind"] in kinds:
                    found.append(self._decision(number, row))
        return found

    def unfinished(self, plan: RoundPlan, url: str) -> list[dict[str, Any]]:
        """Return what the journal of the round in hand already says of a normal URL."""
        rows = _journalled(self.crawl, plan, url)
        members = [records.capture_record(row, None, self.crawl.spec) for row in rows]
        return [
            {"round": plan.round, "committed": False}
            | {name: _moment(name, member.get(name)) for name in _DECISION_COLUMNS}
            for member in members
        ]

    def _decision(self, number: int, row: dict[str, Any]) -> dict[str, Any]:
        decision = {"round": number, "committed": True} | {name: row.get(name) for name in _DECISION_COLUMNS}
        url = row["url"]
        if row["kind"] != ROBOTS and row["reason"] not in _NEVER_ASKED_ROBOTS:
            decision["robots"] = self.robots_version(authority_of(url), number, row["started_at"])
        if row["outcome"] == "duplicate":
            lost = self.crawl.rows("duplicates", number, "url", url)
            decision["duplicate"] = {
                name: lost[0][name] for name in ("kept_url", "kind", "similarity") if lost
            }
        removed = self.crawl.rows("removed", number, "url", url, self.crawl.partition(url))
        if removed:
            decision["removed"] = {name: removed[0][name] for name in ("reason", "removed_at")}
        return decision

    def robots_version(self, authority: str, number: int, at: datetime | None) -> dict[str, Any] | None:
        """Return the fetch of robots.txt that was in force for an authority in a round, ``at`` an instant of it.

        Redirects are followed to the file that answered; ``via`` names the URLs on the way. None when no round
        is known to have asked for it.
        """
        asked, via = self._asked(_robots_url(authority), number, at), list[str]()
        while asked is not None and asked["fetch_redirect"] and len(via) <= MAX_REDIRECTS:
            target = self._asked(asked["fetch_redirect"], number, at)
            if target is None or target["url"] in via:
                break
            via.append(asked["url"])
            asked = target
        return asked and asked | {"via": via}

    def _asked(self, url: str, number: int, at: datetime | None) -> dict[str, Any] | None:
        """Return the newest request of a robots.txt up to a round, not after ``at``."""
        for earlier in range(number, max(0, number - MOST_ROUNDS_BACK), -1):
            for row in reversed(self._rows(earlier, url)):
                if row["kind"] == ROBOTS and (at is None or row["started_at"] <= at):
                    facts = {name: row.get(name) for name in _ROBOTS_COLUMNS}
                    return {"url": url, "round": earlier, "fetched_at": row["started_at"], **facts}
        return None

    def _read_rows(self, number: int, url: str) -> list[dict[str, Any]]:
        """Return a URL's rows of one round in captures, in the order of their start."""
        partition = self.crawl.partition(url)
        rows = self.crawl.rows("captures", number, "url_surtkey", surt_key(url), partition)
        own = [row for row in rows if row["url"] == url]
        return sorted(own, key=lambda row: row["started_at"] or _BEFORE_ALL)


def _journalled(crawl: CrawlNow, plan: RoundPlan, url: str) -> Iterator[OutcomeRow]:
    host_key, url_key = crawl.keys_of(url)
    shard = plan.shard_of_group.get(str(host_key >> 48))
    if shard is None:
        return
    for entry in Journal(crawl.folder, plan.round, shard).entries():
        keys = parts.read_whole(crawl.storage, entry.outcomes_path, ["url_key"]).column(0).to_numpy()
        places = np.flatnonzero(keys == np.uint64(url_key)).tolist()
        if places:
            rows = table_to_rows(
                parts.read_whole(crawl.storage, entry.outcomes_path).take(places), OutcomeRow
            )
            yield from (row for row in rows if row.url == url and row.kind != ROBOTS)


def _moment(name: str, value: Any) -> Any:
    return instant(value) if name.endswith("_at") and isinstance(value, float) else value


def _robots_url(authority: str) -> str:
    url = normalise(f"{authority}/robots.txt")
    if not isinstance(url, NormalUrl):
        raise ValueError(f"not an authority of a normal URL: {authority!r}")
    return url.url
