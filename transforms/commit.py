"""CommitRound: every file and count of the round into one create-only manifest, last of all."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import apache_beam as beam

from connectors import layout
from connectors.files import digest_of
from schemas.manifest import FORMAT_VERSION, FileEntry, Manifest
from schemas.round import FileRow, RoundSpec, Tally
from transforms import coders
from transforms.grouping import GroupKinds, Kinds, Tagged
from transforms.revisits import revisit_cells, round_interval_seconds
from transforms.view import RoundView, open_view

KINDS = Kinds(files=FileRow, replaced=str, tallies=Tally)
PER_ROUND_TABLES = frozenset({*layout.TABLES, "warc", "index"})


class CommitRound(beam.PTransform):
    """(PCollection[FileEntry], PCollection[str], PCollection[Tally]) -> PCollection[int].

    The files that the round wrote, the paths of state files that it replaced, and its counts. The manifest is
    written when everything else is done, create-only: of two attempts one commits, and the other sees that.
    Yields the number of the committed round; nothing when nothing was planned.
    """

    def __init__(self, spec: RoundSpec) -> None:
        super().__init__()
        self.spec = spec

    def expand(self, inputs: tuple[beam.PCollection, beam.PCollection, beam.PCollection]) -> beam.PCollection:
        """Bring everything to one place, then write the manifest."""
        files, replaced, tallies = inputs
        keyed = {
            "files": files
            | "KeyFiles" >> beam.Map(lambda row: (0, row)).with_output_types(tuple[int, FileRow]),
            "replaced": replaced
            | "KeyReplaced" >> beam.Map(lambda path: (0, path)).with_output_types(tuple[int, str]),
            "tallies": tallies
            | "KeyTallies" >> beam.Map(_keyed_tally).with_output_types(tuple[tuple[str, str], int])
            | "ByName" >> beam.GroupByKey()
            | "SumTallies"
            >> beam.MapTuple(lambda names, values: (0, Tally(*names, sum(values)))).with_output_types(
                tuple[int, Tally]
            ),
        }
        commit = beam.ParDo(_Commit(self.spec)).with_output_types(int)
        return keyed | "Gather" >> GroupKinds(KINDS, int) | "Commit" >> commit


def _keyed_tally(tally: Tally) -> tuple[tuple[str, str], int]:
    return (tally.group, tally.name), tally.value


class _Commit(beam.DoFn):
    def __init__(self, spec: RoundSpec) -> None:
        self.spec = spec

    def process(self, element: tuple[int, Iterable[Tagged]]) -> Iterator[int]:
        groups = KINDS.opened(element[1])
        view = open_view(self.spec)
        files = [coders.file_entry(row) for row in groups["files"]]
        manifest = manifest_of_round(view, files, set(groups["replaced"]), groups["tallies"])
        yield view.folder.commit_manifest(manifest).round


def manifest_of_round(
    view: RoundView, files: list[FileEntry], replaced: set[str], tallies: list[Tally]
) -> Manifest:
    """Return the manifest: live state of the parent and of this round, this round's tables, all counts."""
    plan = view.plan
    kept = [entry for entry in _carried(view) if entry.path not in replaced]
    current = [*_state_documents(view), *files]
    groups: dict[str, dict[str, int]] = {"outcome": {}, "counter": {}, "revisits": {}}
    for tally in tallies:
        groups[tally.group][tally.name] = tally.value
    outcomes: dict[str, dict[str, int]] = defaultdict(dict)
    for name, count in sorted(groups["outcome"].items()):
        outcome, _, reason = name.partition("/")
        outcomes[outcome][reason or outcome] = count
    return Manifest(
        format_version=FORMAT_VERSION,
        round=plan.round,
        run_id=plan.run_id,
        parent=plan.parent,
        as_of=_instant(plan.as_of),
        started_at=_instant(plan.planned_at),
        committed_at=_instant(time.time()),
        flags=plan.flags,
        planned=plan.planned,
        outcomes=dict(outcomes),
        left_out=plan.left_out,
        counters=dict(sorted(groups["counter"].items())),
        injected=[*(view.parent.injected if view.parent else []), *plan.injected],
        files=sorted([*kept, *current], key=lambda entry: entry.path),
        revisit_cells=revisit_cells(view, groups["revisits"]),
        round_interval_seconds=round_interval_seconds(view),
    )


def _carried(view: RoundView) -> list[FileEntry]:
    """Return the parent's files that stay live: state, but not that round's own tables and archives."""
    files = view.parent.files if view.parent else []
    superseded = {"policy", "scope"}
    return [entry for entry in files if entry.table not in PER_ROUND_TABLES | superseded]


def _state_documents(view: RoundView) -> list[FileEntry]:
    """Return the entries of the policy and scope files in force."""
    entries = []
    for table, path in (("policy", view.plan.policy_path), ("scope", view.plan.scope_path)):
        if path:
            with view.storage.open_read(path) as file:
                digest = digest_of(file)
            entries.append(FileEntry(path, "", table, 0, 0, 1, view.storage.size(path), digest))
    return entries


def _instant(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
