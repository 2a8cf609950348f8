"""Many new hosts behind one address: from the first contact on, the address is asked with its own pause."""

from __future__ import annotations

import contextlib
import io
from itertools import pairwise
from pathlib import Path

import duckdb

from pipelines import inject
from pipelines import round as round_command
from tests.fakes.dns_server import DnsServer
from tests.fakes.toy_server import serve
from tests.fakes.toy_web import Reply

HOSTS = 50
PAUSE_SECONDS = 0.08
# The server shares a machine with the crawler: now and then it looks at the clock late.
JITTER_SECONDS = 0.04


class OnePage:
    """Every host has a page of its own and no robots.txt."""

    def respond(self, host: str, target: str, *conditions: str | None) -> Reply:
        if target == "/robots.txt":
            return Reply(404, b"none", "text/plain")
        return Reply(200, f"<title>{host}</title><p>Nothing but {host}.".encode())


def test_fifty_hosts_on_one_address_are_asked_one_after_another(tmp_path: Path) -> None:
    records = {("*.example", "A"): (60, "127.0.0.1")}
    with serve(OnePage()) as server, DnsServer(records) as names, contextlib.redirect_stdout(io.StringIO()):
        seeds = [f"http://host{number}.example:{server.port}/" for number in range(HOSTS)]
        assert inject.main([f"--crawl={tmp_path}/crawl", "--salt=crowd", *seeds]) == 0
        flags = [
            f"--crawl={tmp_path}/crawl",
            "--runner=FnApiRunner",
            f"--nameservers=127.0.0.1:{names.nameserver.port}",
            "--allow_private_addresses",
            "--contact=https://bot.example/",
            f"--min_ip_delay_seconds={PAUSE_SECONDS}",
            "--min_delay_seconds=0",
            "--latency_factor=0",
            "--round_minutes=2",
        ]
        assert round_command.main(flags) == 0
    arrivals = sorted(access.arrived_at for access in server.log)
    assert len(arrivals) == 2 * HOSTS
    assert min(later - earlier for earlier, later in pairwise(arrivals)) >= PAUSE_SECONDS - JITTER_SECONDS
    captures = f"read_parquet('{tmp_path}/crawl/tables/captures/*/*.parquet')"
    rows = duckdb.sql(f"SELECT epoch_us(started_at) FROM {captures} ORDER BY 1").fetchall()
    starts = [micros / 1e6 for (micros,) in rows]
    assert len(starts) == 2 * HOSTS
    assert min(later - earlier for earlier, later in pairwise(starts)) >= PAUSE_SECONDS - 0.001
    assert arrivals[-1] - arrivals[0] < 1.5 * PAUSE_SECONDS * 2 * HOSTS, "and the address is kept busy"
    assert max(names.asked.values()) == 1
