"""The explanation of a URL as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

INDENT = 10


def text_of(document: dict[str, Any]) -> str:
    """Return the lines that tell what `transforms.explaining.explain` found.

    Whatever came from a server or the command line has its control characters, and all that can change how a
    terminal shows other text, as escapes.
    """
    lines = [*_identity(document), *_history(document), *_outlook(document)]
    return "\n".join(f"{label:<{INDENT}}{printable(text)}" for label, text in lines)


def printable(text: str) -> str:
    """Return the text with each character that is not printable in Unicode's sense as an escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _identity(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if document["url"] is None:
        yield "URL", f"none: {document['given']}"
        yield "known", f"no, and not to be crawled: {document['reason']}"
        return
    yield "URL", document["url"]
    if document["changes"]:
        yield "", f"given as {document['given']}"
        yield "", f"changed: {', '.join(document['changes'])}"
    yield "known", _known(document)
    for source in document["chain"]:
        yield "", f"found on {source}"
    keys = document["keys"]
    yield "keys", f"partition {keys['partition']}, host {keys['host_key']}, URL {keys['url_key']}"
    yield "", f"domain {keys['registered_domain']}, SURT {keys['url_surtkey']}"


def _known(document: dict[str, Any]) -> str:
    found = document["found"]
    if not document["known"]:
        admission = document["admission"]
        verdict = "would be admitted" if admission["admitted"] else f"would be refused: {admission['reason']}"
        return f"no; a link to it {verdict}"
    if found is None:
        return "yes, a seed of the round that is planned"
    if "injected_in" in found:
        return "yes, a seed that waits for the next plan"
    what = "a seed" if found["is_seed"] else f"depth {found['depth']}"
    return f"yes, {what}, found in round {found['round']}, {_at(found['at'])}, priority {found['priority']:g}"


def _history(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for entry in document["rounds"]:
        label = f"round {entry['round']}"
        for line in _decision(entry):
            yield label, line
            label = ""
    for kept in document["duplicate_chain"]:
        standing = "a page of the crawl" if kept["in_pages"] else f"now {kept['status'] or 'unknown'}"
        yield "kept", f"{kept['url']}: {standing}"


def _decision(entry: dict[str, Any]) -> Iterator[str]:
    if entry["outcome"] is None:
        yield "planned" if entry["reason"] == "planned" else f"due, left out by {entry['reason']}"
    else:
        detail = f" ({entry['detail']})" if entry["detail"] else ""
        kind = "" if entry["kind"] == "planned" else f", a {entry['kind']}"
        state = "" if entry["committed"] else ", not committed yet"
        yield f"{entry['outcome']}: {entry['reason'] or 'a new or changed page'}{detail}{kind}{state}"
    if entry["plan"]:
        yield from _plan(entry["plan"])
    if entry.get("started_at"):
        yield from _request(entry)
    if entry.get("warc_filename"):
        yield f"stored in {_place(entry)}"
    if entry.get("duplicate"):
        lost = entry["duplicate"]
        yield f"{lost['kind']} duplicate of {lost['kept_url']}, similarity {lost['similarity']:.3f}"
    if entry.get("removed"):
        yield f"to be taken out of an index: {entry['removed']['reason']}"
    if entry.get("robots"):
        yield from _robots_version(entry)


def _plan(plan: dict[str, Any]) -> Iterator[str]:
    cut = "no cut" if plan["cut_rank"] is None else f"cut at {plan['cut_rank']:.4g}"
    yield f"score {plan['score']:.4g}, rank {plan['rank']:.4g} ({cut}), due since {_at(plan['due_since'])}"
    yield (
        f"place {plan['host_place']} of {plan['host_urls_due']} due on its host, which may get "
        f"{plan['host_budget']} in the round, and has had {plan['host_urls_asked']} of {plan['host_total_urls']}"
    )


def _request(entry: dict[str, Any]) -> Iterator[str]:
    status = "no answer" if entry["fetch_status"] is None else f"status {entry['fetch_status']}"
    target = f" to {entry['fetch_redirect']}" if entry["fetch_redirect"] else ""
    cut = f", cut short ({entry['content_truncated']})" if entry["content_truncated"] else ""
    yield (
        f"asked {_at(entry['started_at'])} at {entry['ip'] or 'no address'}, {entry['fetch_millis']} ms, "
        f"{status}{target}{cut}, after a pause of {entry['host_delay_seconds']:g} s"
    )


def _robots_version(entry: dict[str, Any]) -> Iterator[str]:
    version = entry["robots"]
    if entry["robots_rule"]:
        yield f"robots.txt says: {entry['robots_rule']}"
    via = "".join(f", redirected from {url}" for url in version["via"])
    status = "no answer" if version["fetch_status"] is None else f"status {version['fetch_status']}"
    place = f", stored in {_place(version)}" if version["warc_filename"] else ""
    asked = f"{_at(version['fetched_at'])} (round {version['round']})"
    yield f"robots.txt of {asked}, {version['url']}{via}: {status}{place}"


def _outlook(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    robots = document["robots"]
    if robots:
        verdict = (
            "allows it" if robots["allowed"] else f"forbids it: {robots['rule'] or robots['reason'] or 'all'}"
        )
        yield "robots", f"the copy in force {verdict}; asked again after {_at(robots['expires_at'])}"
    if document["policy"]:
        rules = ", ".join(f"{name}={value}" for name, value in document["policy"].items())
        yield "policy", f"of the operator: {rules}"
    if document["known"] and not document["admission"]["admitted"]:
        yield "rules", f"a link to it would be refused today: {document['admission']['reason']}"
    outlook = document["next"]
    if outlook:
        yield "next", f"{_at(outlook['at'])}: {outlook['why']}"
        if outlook["host_not_before_at"] and outlook["host_not_before_at"] > outlook["at"]:
            yield "", f"its host is left alone until {_at(outlook['host_not_before_at'])}"
    elif document["known"]:
        yield "next", "in the round that is planned, or the next one"


def _place(entry: dict[str, Any]) -> str:
    return f"{entry['warc_filename']} at {entry['warc_record_offset']}, {entry['warc_record_length']} bytes"


def _at(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
