"""Add this round's rows to a partition's sorted runs, and merge runs whose turn it is."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from connectors import runs
from schemas.manifest import FileEntry
from transforms.view import RoundView


class Written(NamedTuple):
    """Run files that this round adds, and the paths of committed ones that they replace."""

    files: list[FileEntry]
    replaced: list[str]


def add_run(
    view: RoundView, table: runs.RunTable, partition: int, rows: pa.Table | Mapping[str, Any] | None
) -> Written:
    """Write rows as a level-0 run (None: no rows), then do the merges that are due for the partition."""
    token = secrets.token_hex(4)
    live = list(view.entries(table.name, partition))
    committed = {entry.path for entry in live}
    if rows is not None:
        live.append(runs.write_run(view.storage, table, partition, view.spec.round, rows, token=token))
    for merge in runs.plan_compaction(live, view.spec.round, partition):
        merged = runs.merge_runs(
            view.storage,
            table,
            merge.runs,
            partition,
            view.spec.round,
            level=merge.level,
            token=token,
            oldest=merge.oldest,
        )
        taken = {entry.path for entry in merge.runs}
        live = [entry for entry in live if entry.path not in taken]
        live += [merged] if merged is not None else []
    paths = {entry.path for entry in live}
    return Written(
        [entry for entry in live if entry.path not in committed],
        sorted(committed - paths),
    )
