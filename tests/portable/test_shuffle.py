"""How much a round sends through shuffles: names of files, not pages."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from apache_beam.runners.portability.fn_api_runner import execution

from pipelines import inject
from pipelines import round as round_command
from tests.fakes.toy_server import serve
from tests.fakes.toy_web import ToyWeb

PAGE_BYTES = 4_000
VALUE_BYTES = 5_000_000


class ShuffleCounts:
    """Bytes as the coders wrote them: of each shuffle, the largest element, and each key's values."""

    def __init__(self) -> None:
        self.elements: Counter[int] = Counter()
        self.largest_element = 0
        self.keys: dict[tuple[int, bytes], int] = defaultdict(int)

    def clear(self) -> None:
        """Begin anew."""
        self.elements.clear()
        self.keys.clear()
        self.largest_element = 0

    @property
    def total(self) -> int:
        return sum(self.elements.values())

    @property
    def largest_key(self) -> int:
        return max(self.keys.values())


class CountingCoder:
    """A shuffle's coder that counts what it decodes."""

    def __init__(self, coder: Any, shuffle: int, counts: ShuffleCounts) -> None:
        self._coder, self._shuffle, self._counts = coder, shuffle, counts
        self._impl = coder.get_impl()
        self._key_impl = coder.key_coder().get_impl()

    def key_coder(self) -> Any:
        return self._coder.key_coder()

    def get_impl(self) -> CountingCoder:
        return self

    def decode_from_stream(self, stream: Any, nested: bool) -> Any:
        left = stream.size()
        element = self._impl.decode_from_stream(stream, nested)
        size = left - stream.size()
        self._counts.elements[self._shuffle] += size
        self._counts.largest_element = max(self._counts.largest_element, size)
        self._counts.keys[self._shuffle, self._key_impl.encode(element.value[0])] += size
        return element


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Iterator[ShuffleCounts]:
    """Count every element of every shuffle of the in-memory engine."""
    counted = ShuffleCounts()
    plain = execution.GroupingBuffer.__init__
    shuffles = iter(range(1_000_000))

    def init(self: Any, coder: Any, post_coder: Any, windowing: Any) -> None:
        plain(self, CountingCoder(coder, next(shuffles), counted), post_coder, windowing)

    monkeypatch.setattr(execution.GroupingBuffer, "__init__", init)
    yield counted


@pytest.mark.timeout(900)
def test_only_names_are_shuffled(
    counts: ShuffleCounts, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    web = ToyWeb(sites=3, pages=300)
    folder = tmp_path / "crawl"
    shuffled, planned = 0, 0
    with serve(web) as server, contextlib.redirect_stdout(io.StringIO()):
        assert inject.main([f"--crawl={folder}", "--salt=toy", *web.seeds()]) == 0
        for number in (1, 2, 3):
            counts.clear()
            assert round_command.main(flags(folder, server.port)) == 0
            pages = planned_in(folder, number)
            with capsys.disabled():
                print(
                    f"\nround {number}: {pages} pages, {counts.total} bytes, {counts.total / pages:.0f} a page; "
                    f"largest element {counts.largest_element} bytes, largest key {counts.largest_key} bytes",
                    file=sys.stderr,
                )
            assert counts.largest_element < VALUE_BYTES
            assert counts.largest_key < VALUE_BYTES
            shuffled, planned = shuffled + counts.total, planned + pages
    assert planned > 1000
    assert shuffled <= PAGE_BYTES * planned
    assert counts.total <= PAGE_BYTES * pages


def flags(folder: Path, port: int) -> list[str]:
    """Return a round's command line; frequent checkpoints make many segments, each with parts of its own."""
    return [
        f"--crawl={folder}",
        "--runner=FnApiRunner",
        "--shards=4",
        "--checkpoint_seconds=1",
        "--min_delay_seconds=0",
        "--latency_factor=0",
        "--round_minutes=5",
        f"--connect_to=::127.0.0.1:{port}",
    ]


def planned_in(folder: Path, number: int) -> int:
    return int(json.loads((folder / f"rounds/{number:06d}/manifest.json").read_text())["planned"])
