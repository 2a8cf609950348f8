"""What a round takes of the frontier, and the reason for everything it leaves."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.budgets import FrontierPolicy, RoundTerms, host_quota, planned_delay, round_quota
from crawler.frontier import REASONS, cut_to, select
from crawler.ranks import candidates_of, threshold_for
from schemas.state import DomainRules, HostState, UrlState, UrlStatus

TERMS = RoundTerms(number=5, as_of=1_000.0, starts_at=2_000.0, salt="salt")
MINUTE = FrontierPolicy(round_seconds=60.0, min_delay_seconds=1.0)


def no_rules(name):
    return DomainRules()


def host(number, domain=None, **facts):
    name = f"h{number}.example"
    return HostState(name, number, domain or name, **facts)


def urls(host_number, count, start=0, **facts):
    rows = []
    for index in range(start, start + count):
        row = UrlState(
            url=f"http://h{host_number}.example/{index}",
            host_key=host_number,
            url_key=host_number * 1_000_003 + index * 7_919,
            status=UrlStatus.UNFETCHED,
            next_fetch_at=0.0,
            depth=1,
            priority=0.5,
            discovered_from=None,
            discovered_round=1,
            discovered_at=0.0,
        )
        rows.append(row._replace(**facts))
    return rows


def verdicts(states, hosts, policy=MINUTE, rules_of=no_rules, terms=TERMS):
    selection = select(candidates_of(states), {h.host_key: h for h in hosts}, rules_of, policy, terms)
    return {
        state.url: REASONS[code] for state, code in zip(states, selection.reason.tolist(), strict=True)
    }, selection


@pytest.mark.parametrize(
    ("window", "delay", "latency", "limit", "expected"),
    [
        (3600, 5, None, None, 648),
        (3600, 1, 0.01, None, 3240),
        (60, 1, 0.002, None, 54),
        (3600, 5, 2.5, None, 456),  # 0.95 * 3600 / 7.5: 648 would need 81 minutes
        (3600, 3600, None, None, 1),
        (3600, 86400, 1, None, 1),
        (60, 0, 0.5, None, 108),
        (60, 0, None, None, 5400),
        (3600, 5, None, 200, 200),
        (3600, 5, None, 5000, 648),
        (3600, 5, None, 0, 0),
    ],
)
def test_quota_is_what_fits_politely(window, delay, latency, limit, expected):
    assert host_quota(window, delay, latency, limit) == expected


def test_quota_of_a_host_in_its_round():
    policy = FrontierPolicy()
    assert round_quota(host(1), DomainRules(), policy, 0.0) == 648
    assert round_quota(host(1, delay_seconds=10.0), DomainRules(), policy, 0.0) == 324
    assert round_quota(host(1), DomainRules(min_delay_seconds=10.0), policy, 0.0) == 324
    assert round_quota(host(1, delay_seconds=1.0), DomainRules(), policy, 0.0) == 648
    assert round_quota(host(1, not_before_at=1_800.0), DomainRules(), policy, 0.0) == 324
    assert round_quota(host(1, not_before_at=3_600.0), DomainRules(), policy, 0.0) == 0
    assert round_quota(host(1, delay_seconds=130.0), DomainRules(), policy, 0.0) == 10
    capped = FrontierPolicy(host_round_urls=100)
    assert round_quota(host(1), DomainRules(), capped, 0.0) == 100
    assert round_quota(host(1), DomainRules(round_urls=200), capped, 0.0) == 200
    assert planned_delay(host(1), DomainRules(), policy) == 5.0


@pytest.mark.parametrize(
    "bad",
    [
        {"round_urls": 0},
        {"host_round_urls": 0},
        {"round_seconds": 0.0},
        {"round_seconds": float("inf")},
        {"min_delay_seconds": -1.0},
        {"new_share": 1.5},
        {"max_domain_hosts": 0},
    ],
)
def test_policy_refuses_what_cannot_work(bad):
    (name,) = bad
    with pytest.raises(ValueError, match=name):
        FrontierPolicy(**bad)


def test_host_budget_bounds_a_host_and_no_other():
    found, selection = verdicts(urls(1, 200) + urls(2, 10), [host(1), host(2)])
    assert Counter(found.values()) == {"selected": 64, "host_budget": 146}
    assert all(found[row.url] == "selected" for row in urls(2, 10))
    assert selection.left_out() == {"host_budget": 146}


def test_a_fifth_of_the_budget_is_kept_for_new_urls():
    backlog = urls(1, 500, priority=1.0, inlink_domains=1000)
    new = urls(1, 50, start=500, priority=0.0, depth=9, discovered_round=4)
    found, _ = verdicts(backlog + new, [host(1)])
    assert sum(found[row.url] == "selected" for row in new) == 10
    assert sum(found[row.url] == "selected" for row in backlog) == 44
    asked = [row._replace(was_asked=True) for row in new]
    found, _ = verdicts(backlog + asked, [host(1)])
    assert sum(found[row.url] == "selected" for row in new) == 0


def test_the_kept_fifth_is_not_wasted():
    found, _ = verdicts(urls(1, 500), [host(1)])
    assert Counter(found.values())["selected"] == 54
    found, _ = verdicts(urls(1, 500, discovered_round=5), [host(1)])
    assert Counter(found.values())["selected"] == 54


def test_host_in_backoff_is_left_alone():
    resting, soon = host(1, not_before_at=2_060.0), host(2, not_before_at=2_030.0)
    found, _ = verdicts(urls(1, 5) + urls(2, 100), [resting, soon])
    assert Counter(found.values()) == {"host_backoff": 5, "selected": 27, "host_budget": 73}


def test_total_bounds_first_visits_only():
    policy = FrontierPolicy(host_total_urls=100)
    known = [row._replace(was_asked=True, visits=1) for row in urls(1, 20)]
    new = urls(1, 50, start=20)
    found, _ = verdicts(known + new, [host(1, fetched_total=95)], policy)
    assert sum(found[row.url] == "selected" for row in new) == 5
    assert all(found[row.url] == "selected" for row in known)
    found, _ = verdicts(new, [host(1, fetched_total=900)], policy)
    assert set(found.values()) == {"host_budget"}


def test_rules_of_a_domain_bound_the_domain_and_its_hosts():
    def rules_of(name):
        return DomainRules(round_urls=10, total_urls=25) if name.endswith("d.example") else DomainRules()

    hosts = [HostState(f"w{n}.d.example", n, "d.example") for n in (1, 2, 3)]
    rows = urls(1, 30) + urls(2, 30)
    found, _ = verdicts(rows, hosts[:2], rules_of=rules_of)
    assert set(found.values()) == {"selected", "host_budget", "domain_budget"}
    assert Counter(found.values())["selected"] == 10
    third = hosts[2]._replace(fetched_total=22)
    found, _ = verdicts(rows, [*hosts[:2], third], rules_of=rules_of)
    assert Counter(found.values())["selected"] == 3


def test_domain_budget_takes_the_best_of_all_its_hosts():
    policy = FrontierPolicy(domain_round_urls=30)
    rows = urls(1, 20) + urls(2, 20) + urls(3, 20)
    hosts = [host(1, "d.example"), host(2, "d.example"), host(3, "e.example")]
    found, selection = verdicts(rows, hosts, policy)
    assert Counter(found.values()) == {"selected": 50, "domain_budget": 10}
    ranks = {row.url: rank for row, rank in zip(rows, selection.rank.tolist(), strict=True)}
    lost = [ranks[url] for url, why in found.items() if why == "domain_budget"]
    kept = [ranks[row.url] for row in rows[:40] if found[row.url] == "selected"]
    assert max(kept) < min(lost)


def test_hosts_of_a_domain_are_bounded_over_all_rounds():
    policy = FrontierPolicy(max_domain_hosts=4)
    rows = [row for n in range(1, 11) for row in urls(n, 3)]
    new = [host(n, "trap.example") for n in range(1, 11)]
    found, selection = verdicts(rows, new, policy)
    assert Counter(found.values()) == {"selected": 12, "hosts_per_domain": 18}
    best_of_host = selection.rank.reshape(10, 3).min(axis=1)
    kept = [found[rows[3 * n].url] == "selected" for n in range(10)]
    assert max(best_of_host[kept]) < min(best_of_host[[not k for k in kept]])
    asked = [h._replace(fetched_total=1) if h.host_key in (1, 2, 3) else h for h in new]
    found, _ = verdicts(rows, asked, policy)
    assert Counter(found.values())["selected"] == 12
    assert all(found[row.url] == "selected" for n in (1, 2, 3) for row in urls(n, 3))


def test_domain_priority_decides_who_goes_first():
    def rules_of(name):
        return DomainRules(priority=1.0) if name == "h2.example" else DomainRules(priority=0.0)

    rows = urls(1, 100) + urls(2, 100)
    _, selection = verdicts(rows, [host(1), host(2)], FrontierPolicy(), rules_of)
    assert float(np.median(selection.rank[:100])) > 5 * float(np.median(selection.rank[100:]))


def test_round_budget_cuts_last():
    rows = urls(1, 100) + urls(2, 100)
    candidates = candidates_of(rows)
    _, selection = verdicts(rows, [host(1), host(2)])
    open_rows = selection.selected
    cut = threshold_for(selection.rank[open_rows], candidates.url_key[open_rows], 30)
    final = cut_to(selection, candidates.url_key, cut)
    assert final.left_out() == {"host_budget": 92, "round_budget": 78}
    assert int(final.selected.sum()) == 30


def test_unknown_host_is_a_fault_of_the_caller():
    with pytest.raises(KeyError):
        verdicts(urls(1, 1), [])


def test_nothing_due_is_an_empty_selection():
    found, selection = verdicts([], [host(1)])
    assert found == {}
    assert selection.left_out() == {}


rows_of_hosts = st.lists(
    st.tuples(st.integers(1, 6), st.integers(0, 40), st.integers(1, 5), st.booleans()),
    max_size=60,
    unique_by=lambda row: row[:2],
)


@settings(max_examples=60)
@given(rows_of_hosts, st.randoms(use_true_random=False))
def test_selection_keeps_every_budget_in_any_order(picks, random):
    policy = FrontierPolicy(
        round_seconds=10.0, min_delay_seconds=2.0, domain_round_urls=6, max_domain_hosts=2
    )
    hosts = [host(n, f"d{n % 2}.example") for n in range(1, 7)]
    rows = []
    for number, index, found_in, was_asked in picks:
        (row,) = urls(number, 1, start=index, discovered_round=found_in)
        rows.append(row._replace(was_asked=was_asked))
    found, _ = verdicts(rows, hosts, policy)
    chosen = [row for row in rows if found[row.url] == "selected"]
    per_host = Counter(row.host_key for row in chosen)
    assert all(count <= 4 for count in per_host.values())
    assert all(count <= 6 for count in Counter(n % 2 for n in [r.host_key for r in chosen]).values())
    assert all(len({h for h in per_host if h % 2 == d}) <= 2 for d in (0, 1))
    random.shuffle(rows)
    random.shuffle(hosts)
    assert verdicts(rows, hosts, policy)[0] == found
    one_domain = [row for row in rows if row.host_key % 2]
    alone = verdicts(one_domain, hosts, policy)[0]
    assert alone == {row.url: found[row.url] for row in one_domain}
