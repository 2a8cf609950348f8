"""Which runs of a partition to merge in which round: tiers by age, staggered over the partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from schemas.manifest import FileEntry

FAN_OUT = 8


class Merge(NamedTuple):
    """Merge ``runs`` into one of ``level``; ``oldest`` when the partition has no run older than these."""

    runs: tuple[FileEntry, ...]
    level: int
    oldest: bool


def plan_compaction(
    runs: Sequence[FileEntry], round_number: int, partition: int, fan_out: int = FAN_OUT
) -> list[Merge]:
    """Return the merges (none or one) that this round owes one table's runs of one partition.

    With x = round + partition: if fan_out^L divides x, all runs below level L become one of level L, provided
    there are at least fan_out of them (else the same for L - 1, ...). So a key is rewritten at most once
    a level: log(rounds) to the base fan_out. Every round an equal part of the partitions merges, and the
    large merges of different partitions fall in different rounds. The merged run is older than every
    run of a lower level, which is what ``oldest_first`` relies on.
    """
    if fan_out < 2:
        raise ValueError(f"fan_out must be at least 2, got {fan_out}")
    for level in range(_levels(round_number + partition, fan_out), 0, -1):
        younger = tuple(run for run in runs if run.level < level)
        if len(younger) >= fan_out:
            return [Merge(younger, level, oldest=len(younger) == len(runs))]
    return []


def _levels(turn: int, fan_out: int) -> int:
    """Return how often ``fan_out`` divides ``turn``."""
    levels = 0
    while turn and turn % fan_out == 0:
        turn //= fan_out
        levels += 1
    return levels
