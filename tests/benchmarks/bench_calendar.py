"""The frontier calendar: what choosing the due URLs of one partition costs as the crawl grows."""

from __future__ import annotations

import tempfile
import time

import numpy as np
import pyarrow as pa

from connectors import calendar
from connectors.files import open_storage
from connectors.rows import rows_to_table
from connectors.slots import deal_tiers
from schemas.manifest import FileEntry
from schemas.state import UrlState

HOUR = 3600.0
NOW = 480_000 * HOUR
SHARE = 1_562


def new_rows(first: int, count: int, next_fetch_at: np.ndarray) -> pa.Table:
    """Return URLs of forty hosts, numbered from ``first``."""
    numbers = np.arange(first, first + count)
    state = UrlState("", 0, 0, "fetched", 0.0, 3, 0.5, "https://example.org/a/page", 1, NOW)
    rows = rows_to_table([state] * count, UrlState)
    hosts = (numbers % 40).astype(np.uint64)
    urls = [f"https://host-{number % 40}.example/section/{number}.html" for number in numbers]
    for name, column in (
        ("url", pa.array(urls)),
        ("host_key", pa.array(hosts)),
        ("url_key", pa.array(numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))),
        ("next_fetch_at", pa.array(next_fetch_at)),
    ):
        index = rows.schema.get_field_index(name)
        rows = rows.set_column(index, rows.schema.field(name), column)
    return rows


def revisits(rng: np.random.Generator, count: int, now: float) -> np.ndarray:
    """Return next visits spread log-evenly from one hour to 90 days ahead."""
    return now + HOUR * np.exp(rng.uniform(0, np.log(90 * 24), count))


def choose(known: int) -> tuple[float, int]:
    """Return seconds and rows read to choose the due URLs among ``known`` ones, 1,562 of them due."""
    rng = np.random.default_rng(6)
    with tempfile.TemporaryDirectory() as folder:
        storage = open_storage(folder)
        instants = revisits(rng, known, NOW + HOUR)
        instants[:SHARE] = NOW - 60
        entries = calendar.write_slots(storage, 0, 1, new_rows(0, known, instants), NOW, "t")
        begun = time.perf_counter()
        opened = calendar.entries_to_open(entries, NOW, SHARE)
        due, later = calendar.read(storage, opened, NOW)
        seconds = time.perf_counter() - begun
    if due.num_rows != SHARE:
        raise ValueError(f"{due.num_rows} rows are due, not {SHARE}")
    return seconds, due.num_rows + later.num_rows


class Partition:
    """The calendar of one partition, over hourly rounds that fetch 1,562 URLs and find twice as many."""

    def __init__(self, folder: str) -> None:
        self.storage = open_storage(folder)
        self.rng = np.random.default_rng(7)
        self.entries: list[FileEntry] = []
        self.known = 0

    def play(self, number: int) -> int:
        """Choose, fetch, find and deal again; return the rows read."""
        now = NOW + number * HOUR
        opened = calendar.entries_to_open(self.entries, now, SHARE, number)
        due, later = calendar.read(self.storage, opened, now)
        fetched, left = due.slice(0, SHARE), due.slice(SHARE)
        column = fetched.schema.get_field_index("next_fetch_at")
        again = pa.array(revisits(self.rng, fetched.num_rows, now))
        fetched = fetched.set_column(column, fetched.schema.field(column), again)
        found = new_rows(self.known, 2 * SHARE, np.full(2 * SHARE, now))
        self.known += found.num_rows
        rows = pa.concat_tables([fetched, later, found, left])
        hosts = left.column("host_key").to_numpy()
        tiers = np.zeros(rows.num_rows, np.int64)
        tiers[len(tiers) - len(hosts) :] = deal_tiers(hosts, np.full(len(hosts), 648.0), SHARE)
        written = calendar.write_slots(self.storage, 0, number, rows, now, "t", tiers=tiers)
        for entry in opened:
            self.storage.delete(entry.path)
        self.entries = [entry for entry in self.entries if entry not in opened] + written
        return due.num_rows + later.num_rows


def live(rounds: int) -> dict[str, float]:
    """Return the cost of a partition's rounds: the first half against the second shows whether they get dearer."""
    seconds, read, files = [], [], 0
    with tempfile.TemporaryDirectory() as folder:
        partition = Partition(folder)
        for number in range(1, rounds + 1):
            begun = time.process_time()
            read.append(partition.play(number))
            seconds.append(time.process_time() - begun)
            files = max(files, len(partition.entries))
        if sum(entry.rows for entry in partition.entries) != partition.known:
            raise ValueError("rows were lost or doubled")
    half = rounds // 2
    return {
        "known_after_rounds": partition.known,
        "most_files": files,
        "rows_read_a_round": float(np.mean(read[half:])),
        "cpu_seconds_a_round_first_half": float(np.mean(seconds[:half])),
        "cpu_seconds_a_round_second_half": float(np.mean(seconds[half:])),
    }


def run() -> dict[str, float]:
    """Return what choosing costs at 40,000 and 400,000 known URLs, and over 300 rounds."""
    small, small_rows = choose(40_000)
    large, large_rows = choose(400_000)
    return {
        "choose_seconds_40k_known": small,
        "choose_seconds_400k_known": large,
        "choose_rows_read_40k_known": small_rows,
        "choose_rows_read_400k_known": large_rows,
        **live(300),
    }


if __name__ == "__main__":
    for label, figure in run().items():
        print(f"{label:40}{figure:14,.3f}")
