"""A site that answers every parameter with the same template: how far a crawl follows it, with and without gate."""

from __future__ import annotations

import contextlib
import io
from hashlib import blake2b
from pathlib import Path

import apache_beam as beam
import pytest

from pipelines import inject
from pipelines import round as round_command
from schemas.round import RoundSpec
from tests.fakes.toy_server import serve
from tests.fakes.toy_web import Reply, ToyWeb
from tests.pipelines.conftest import ToyCrawl
from transforms.dedup import Gate

LINKS_A_PAGE, ROUNDS = 3, 3
TEMPLATE = " ".join(f"word{n} and another{n % 13}" for n in range(200))


class TrapWeb(ToyWeb):
    """One page for every value of a parameter; each differs in one word, and links to three more."""

    def __init__(self) -> None:
        super().__init__(sites=3, pages=1)
        self.robots = {}

    def respond(self, host: str, target: str, *more: object) -> Reply:
        """Return the template, filled in for this URL."""
        if target == "/robots.txt":
            return Reply(404, b"none", "text/plain")
        state = blake2b(target.encode(), digest_size=6).hexdigest()
        links = "".join(
            f'<a href="/list?filter={state}{number}">more {number}</a> ' for number in range(LINKS_A_PAGE)
        )
        body = (
            f"<html><title>List</title><body><article><p>{TEMPLATE} {state}</p></article><nav>{links}</nav>"
        )
        return Reply(200, body.encode())


class NoGate(beam.PTransform):
    """Lets every page through."""

    def __init__(self, spec: RoundSpec) -> None:
        super().__init__()

    def expand(self, parsed: beam.PCollection) -> Gate:
        """Tell nothing."""
        nothing = parsed | beam.Filter(lambda ref: False)
        return Gate(*[nothing | f"No{name}" >> beam.FlatMap(lambda ref: []) for name in Gate._fields])


def fetched(folder: Path) -> int:
    """Return how many pages of the trap the rounds fetch."""
    web = TrapWeb()
    with serve(web) as server, contextlib.redirect_stdout(io.StringIO()):
        crawl = ToyCrawl(folder, web, server, [])
        assert inject.main([f"--crawl={folder}", "--salt=trap", "http://www.trap.example/list"]) == 0
        assert crawl.run_round(f"--rounds={ROUNDS}", "--min_delay_seconds=0", "--min_ip_delay_seconds=0") == 0
    return sum(access.path != "/robots.txt" for access in server.log)


def test_the_gate_cuts_the_trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fetched(tmp_path / "with") == 1 + LINKS_A_PAGE
    monkeypatch.setattr(round_command, "MarkDuplicates", NoGate)
    assert fetched(tmp_path / "without") == sum(LINKS_A_PAGE**number for number in range(ROUNDS))
