"""Links of a page against the cases of Scrapy's link extractor."""

from __future__ import annotations

import base64
import re

from crawler.charset import CharsetChoice, decode, encoding_name
from crawler.html import read_html
from crawler.urls import NormalUrl, host_of, normalise

RESTRICTS_A_REGION = {"s12", "s13", "s16", "s17"}
CHOOSES_TAGS_AND_ATTRIBUTES = {
    *("s26", "s27", "s28", "s30", "s31", "s32", "s33", "s34", "s36", "s37", "s38", "s39"),
}
REWRITES_VALUES = {"s23"}
HTTP_ONLY = {"s44"}
ON_PURPOSE = RESTRICTS_A_REGION | CHOOSES_TAGS_AND_ATTRIBUTES | REWRITES_VALUES | HTTP_ONLY


def as_list(value):
    return [value] if isinstance(value, str) else list(value or ())


def passes(link, options):
    """Apply those of Scrapy's options that only choose among links: we do that by rules, later."""
    url, text, _ = link
    host, extension = host_of(url), url.rpartition("/")[2].rpartition(".")[2]
    allow, deny = as_list(options.get("allow")), as_list(options.get("deny"))
    allow_domains, deny_domains = as_list(options.get("allow_domains")), as_list(options.get("deny_domains"))
    texts = as_list(options.get("restrict_text"))
    return (
        (not allow or any(re.search(pattern, url) for pattern in allow))
        and not any(re.search(pattern, url) for pattern in deny)
        and (not allow_domains or any(host.endswith(domain) for domain in allow_domains))
        and not any(host.endswith(domain) for domain in deny_domains)
        and (not texts or any(re.search(pattern, text) for pattern in texts))
        and extension not in options.get("deny_extensions", ["jpg"])
    )


def links_of(case):
    choice = CharsetChoice(encoding_name(case["encoding"]), "header")
    html = decode(base64.b64decode(case["html_b64"]), choice)
    page = read_html(html, normalise(case["url"]).url, choice.name)
    links = [(link.target_url, link.anchor, "nofollow" in link.rel.split()) for link in page.links]
    return [link for link in links if passes(link, case.get("opts", {}))]


def expected_of(case):
    """Return what Scrapy expects, in our normal form and each target once."""
    found = {}
    for link in case["expected"]:
        target = normalise(link["url"])
        url = target.url if isinstance(target, NormalUrl) else link["url"]
        found.setdefault(url, (url, link["text"], link["nofollow"]))
    return list(found.values())


def test_scrapy_cases_differ_only_by_its_options(cases):
    rows = cases("links_scrapy")
    assert len(rows) >= 54
    assert {case["id"] for case in rows if links_of(case) != expected_of(case)} == ON_PURPOSE
