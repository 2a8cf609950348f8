"""`pipelines.explain` of URLs that the crawl does not know, and of known ones in any spelling."""

from __future__ import annotations

import pytest

from tests.pipelines.conftest import ToyCrawl
from tests.pipelines.explaining import HUB, TROUBLE, asked, told


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("http://new.example/page", None),
        ("http://new.example:99/", "unsupported_port"),
        ("http://new.example/a/b/a/b/a/b", "trap_repeating_path"),
        ("http://new.example/calendar/2099/01", "trap_calendar"),
        ("http://new.example/list?page=99999999", "trap_counter"),
        ("http://new.example/x.zip", "excluded_extension"),
        (f"http://new.example/{'x' * 2100}", "url_too_long"),
        (
            "http://new.example/"
            + "a1/b2/c3/d4/e5/f6/g7/h8/i9/j10/k11/l12/m13/n14/o15/p16/q17/r18/s19/t20/u21",
            "trap_path_segments",
        ),
        ("mailto:me@new.example", "unsupported_scheme"),
        ("no url at all", "invalid_url"),
        ("http://new_.-.example../%zz", None),
    ],
)
def test_an_unknown_url_is_held_against_the_rules(
    toy_crawl: ToyCrawl, given: str, reason: str | None
) -> None:
    document = asked(toy_crawl, given)
    assert document["known"] is False
    assert document["admission"] == {"admitted": reason is None, "reason": reason}
    assert (document["outcome"], document["reason"], document["next_fetch_at"]) == (None, reason, None)
    assert (document["chain"], document["rounds"], document["discovered_from"]) == ([], [], None)
    assert (reason or "would be admitted") in told(toy_crawl, given)


def test_every_document_has_the_same_members(toy_crawl: ToyCrawl) -> None:
    documents = [asked(toy_crawl, url) for url in (HUB, f"{TROUBLE}gone", "http://new.example/", "no url")]
    assert {tuple(sorted(document)) for document in documents} == {tuple(sorted(documents[0]))}
    contract = {"url", "known", "discovered_from", "chain", "rounds", "next_fetch_at", "outcome", "reason"}
    assert contract <= documents[0].keys()


def test_the_url_may_be_given_in_any_spelling(toy_crawl: ToyCrawl) -> None:
    document = asked(toy_crawl, " HTTP://www.Trouble.example:80/x/../gone?utm_source=a#top")
    assert document["url"] == f"{TROUBLE}gone" and document["known"]
    assert set(document["changes"]) == {
        *("white space removed", "scheme in lower case", "host in lower case", "default port removed"),
        *("dot segments resolved", "parameters removed: utm_source", "fragment removed"),
    }
    assert "changed: white space removed, scheme in lower case" in told(
        toy_crawl, " HTTP://www.Trouble.example/gone"
    )
