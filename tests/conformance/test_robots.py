"""robots.txt against protego's own cases, the examples of RFC 9309, and Google's verdicts on real files."""

from __future__ import annotations

from crawler.robots import RobotsRules

OTHER_LINES_END_NO_GROUP = {"p256", "p257", "p258"}
NAMES_ARE_WHOLE = {"p131", "p334", "p340", "p341", "p343", "p344"}
PATTERNS_START_WITH_A_SLASH = {"p317"}
NO_VISIT_TIME = {"p326"}
ON_PURPOSE = OTHER_LINES_END_NO_GROUP | NAMES_ARE_WHOLE | PATTERNS_START_WITH_A_SLASH | NO_VISIT_TIME


def answer_to(case):
    rules = RobotsRules(case["robots"].encode(), case["agent"])
    if case["kind"] == "allow":
        return rules.verdict(case["url"]).allowed
    return None if case["kind"] == "visit_time" else rules.crawl_delay_seconds


def expected_of(case):
    rate = case["expected"]
    return rate["seconds"] / rate["requests"] if case["kind"] == "request_rate" and rate else rate


def test_protego_and_rfc_cases_differ_only_on_purpose(cases):
    rows = cases("robots_protego_rfc9309")
    assert len(rows) >= 377
    assert {case["id"] for case in rows if answer_to(case) != expected_of(case)} == ON_PURPOSE


def test_real_files_get_the_verdicts_of_googles_matcher(cases):
    differing, checked = [], 0
    for site in cases("robots_realsites"):
        for agent, path, allowed, *_ in site["checks"]:
            verdict = RobotsRules(site["robots"].encode(), agent).verdict(f"https://{site['site']}{path}")
            checked += 1
            if verdict.allowed != allowed:
                differing.append((site["id"], agent, path, verdict))
    assert differing == []
    assert checked >= 1_535
