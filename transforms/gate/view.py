"""What the steps of the content gate look up: its rules, its files, the index of earlier rounds."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from connectors.files import Storage, open_storage
from crawler.resolve import AlikePolicy
from schemas.manifest import FileEntry
from schemas.round import RoundSpec
from transforms.view import RoundView, open_view

TEXT_PARTITIONS = 64
REMOTE_THREADS = 8

Result = TypeVar("Result")


@dataclass(frozen=True)
class GateSpec:
    """One use of the gate: in a round of a crawl, or on texts that no crawl fetched (``crawl_round`` None).

    ``folder`` takes the files that flow between its steps.
    """

    folder: str
    partitions: int
    round: int
    near_dup_threshold: float
    crawl_round: RoundSpec | None = None

    @classmethod
    def of_round(cls, spec: RoundSpec) -> GateSpec:
        """Return the gate of a round."""
        return cls(spec.crawl, spec.partitions, spec.round, spec.flags.near_dup_threshold, spec)

    @classmethod
    def of_texts(cls, folder: str, near_dup_threshold: float) -> GateSpec:
        """Return a gate without a memory, which keeps its files in a folder."""
        return cls(folder, TEXT_PARTITIONS, 1, near_dup_threshold)


class GateView:
    """The gate as one worker process sees it."""

    def __init__(self, spec: GateSpec) -> None:
        self.spec = spec
        self.partitions = spec.partitions
        self.policy = AlikePolicy(spec.near_dup_threshold)
        self.round_view: RoundView | None = open_view(spec.crawl_round) if spec.crawl_round else None
        self.storage: Storage = self.round_view.storage if self.round_view else open_storage(spec.folder)

    def entries(self, table: str, partition: int) -> Sequence[FileEntry]:
        """Return the committed runs of a partition of the index; none outside a crawl."""
        return self.round_view.entries(table, partition) if self.round_view else ()

    def in_round(self) -> RoundView:
        """Return the view of the round whose gate this is."""
        if self.round_view is None:
            raise ValueError("a gate on texts is in no round")
        return self.round_view

    def each(self, work: Callable[[int], Result], partitions: Iterable[int]) -> list[Result]:
        """Return ``work`` of each partition, in order; several at once in an object store, where requests wait."""
        if "://" not in self.storage.root:
            return [work(partition) for partition in partitions]
        with ThreadPoolExecutor(REMOTE_THREADS) as pool:
            return list(pool.map(work, partitions))

    def work_path(self, name: str) -> str:
        """Return a fresh name for a file that one step leaves for another."""
        if self.round_view is not None:
            return self.round_view.work_path(name)
        return f"work/{name}-{secrets.token_hex(4)}.parquet"


@lru_cache(maxsize=4)
def open_gate(spec: GateSpec) -> GateView:
    """Return this process's view of the gate, opened at the first call."""
    return GateView(spec)
