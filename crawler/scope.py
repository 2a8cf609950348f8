"""Which links the crawl admits: a list of rules, each giving a verdict with a reason."""

from __future__ import annotations

from collections.abc import Sequence

from crawler import traps
from crawler.limits import (
    ADMITTED,
    DEFAULT_PORTS,
    EXCLUDED_EXTENSIONS,
    LinkContext,
    Rule,
    ScopePolicy,
    Verdict,
)
from crawler.patterns import excludes_path
from crawler.urls import DEFAULT_PORT_OF

__all__ = [
    "ADMITTED",
    "DEFAULT_PORTS",
    "EXCLUDED_EXTENSIONS",
    "RULES",
    "LinkContext",
    "Rule",
    "ScopePolicy",
    "Verdict",
    "admit",
]

_TOO_LONG = Verdict.reject("url_too_long")
_UNSUPPORTED_SCHEME = Verdict.reject("unsupported_scheme")
_UNSUPPORTED_PORT = Verdict.reject("unsupported_port")
_OUT_OF_SCOPE = Verdict.reject("out_of_scope")
_EXCLUDED = Verdict.reject("excluded")
_EXCLUDED_PATH = Verdict.reject("excluded_path")
_EXCLUDED_EXTENSION = Verdict.reject("excluded_extension")
_TOO_DEEP = Verdict.reject("trap_depth")


def has_supported_scheme(link: LinkContext) -> Verdict:
    """Reject as unsupported_scheme what is neither http nor https."""
    return ADMITTED if link.parts.scheme in DEFAULT_PORT_OF else _UNSUPPORTED_SCHEME


def has_supported_port(link: LinkContext) -> Verdict:
    """Reject as unsupported_port what would be asked at a port outside the crawl's list."""
    return ADMITTED if link.parts.port in link.policy.ports else _UNSUPPORTED_PORT


def is_short_enough(link: LinkContext) -> Verdict:
    """Reject as url_too_long what has more than ``max_url_length`` characters."""
    return ADMITTED if len(link.url) <= link.policy.max_url_length else _TOO_LONG


def is_in_scope(link: LinkContext) -> Verdict:
    """Reject as out_of_scope what lies outside the seeds' hosts or domains, if the crawl is kept to them."""
    policy = link.policy
    if policy.scope == "any":
        return ADMITTED
    if policy.scope == "host":
        return ADMITTED if link.parts.host in policy.seed_hosts else _OUT_OF_SCOPE
    return ADMITTED if link.domain in policy.seed_domains else _OUT_OF_SCOPE


def is_not_excluded(link: LinkContext) -> Verdict:
    """Reject as excluded or excluded_path what the operator's policy rules out."""
    if link.rules.exclude:
        return _EXCLUDED
    patterns = link.rules.exclude_paths
    return _EXCLUDED_PATH if patterns and excludes_path(patterns, link.parts) else ADMITTED


def is_near_enough(link: LinkContext) -> Verdict:
    """Reject as trap_depth what is more links from a seed than the domain's ``max_depth``, or the crawl's."""
    most = link.policy.max_depth if link.rules.max_depth is None else link.rules.max_depth
    return ADMITTED if link.depth <= most else _TOO_DEEP


def may_be_a_page(link: LinkContext) -> Verdict:
    """Reject as excluded_extension a path that ends like an archive, image, recording, document or program.

    A wiki's page about a file (``/wiki/File:Cat.jpg``) and a page named after a script (``/wiki/Node.js``,
    with a capital) are pages.
    """
    name = link.parts.path.rpartition("/")[2].partition(";")[0]
    stem, dot, extension = name.rpartition(".")
    if not dot or not stem or extension.lower() not in link.policy.excluded_extensions:
        return ADMITTED
    is_title = ":" in stem or (extension == "js" and stem[:1].isupper())
    return ADMITTED if is_title else _EXCLUDED_EXTENSION


RULES: tuple[Rule, ...] = (
    has_supported_scheme,
    has_supported_port,
    is_short_enough,
    is_not_excluded,
    is_in_scope,
    is_near_enough,
    may_be_a_page,
    traps.has_few_segments,
    traps.does_not_repeat,
    traps.is_not_reencoded,
    traps.is_no_far_date,
    traps.is_no_far_count,
)
"""The rules in the order in which they are asked; a crawl may append its own."""


def admit(link: LinkContext, rules: Sequence[Rule] = RULES) -> Verdict:
    """Return the verdict of the first rule that rejects the link, else that it is admitted.

    Rules are pure: equal links get equal verdicts on every worker and in every attempt.
    """
    for rule in rules:
        verdict = rule(link)
        if not verdict.admitted:
            return verdict
    return ADMITTED
