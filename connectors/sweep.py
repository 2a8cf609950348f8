"""Removal of what no committed round needs: replaced state, litter of dead attempts, old work files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from connectors import layout
from connectors.clock import Clock, SystemClock
from connectors.faults import CrawlFolderError
from connectors.files import FileInfo
from connectors.rounds import CrawlFolder
from schemas.manifest import Manifest

KEPT_MANIFESTS = 3
SCRATCH_SECONDS = 6 * 3600.0
THREADS = 8

_STATE_ROUND = re.compile(r"/r(\d{6,})-[^/]*$")
_ROUND_FILE = re.compile(r"rounds/(\d{6,})/(.+)")
_LEASE_FILE = re.compile(r"leases/(\d{6,})/")
# What stays of a round for good, beside what its manifest names.
_RECORD = re.compile(r"manifest\.json|plan\.json|journal/[^/]+/(?!started-|delay-).+")


def sweep(
    folder: CrawlFolder,
    *,
    keep: int = KEPT_MANIFESTS,
    clock: Clock | None = None,
    holds: Callable[[], bool] = lambda: True,
) -> list[str]:
    """Delete files that nothing can need any more, and return their paths.

    A state file goes when none of the ``keep`` newest manifests names it. A WARC or staged file goes when
    the manifest of its own round does not name it. Work files, plan files, attempts' marks and leases of a
    round go when ``keep`` rounds have been committed after it. Nothing goes that a kept manifest or the round's own
    manifest names, that belongs to a round after the newest commit, or while a round is unfinished. Tables,
    indexes, reports, journals and manifests stay. The cost does not grow with the number of rounds.

    Call it while holding the crawl's lease; ``holds`` is asked before each deletion.
    """
    # Listed first: whatever appears after this cannot be deleted, whoever commits in the meantime.
    newest_listed = folder.newest_round()
    listed = list(_candidates(folder, newest_listed, keep))
    scratch = folder.storage.abandoned()
    if folder.unfinished_round() is not None:
        return []
    newest = folder.newest_round()
    needed = _Needed(folder, newest, keep)
    doomed = [info.path for info in listed if not needed.keeps(info.path)]
    now = (clock or SystemClock()).now()
    doomed += [info.path for info in scratch if now - (info.modified_at or now) > SCRATCH_SECONDS]

    def delete(path: str) -> bool:
        if not holds():
            return False
        folder.storage.delete(path)
        return True

    with ThreadPoolExecutor(THREADS, "sweep") as sweepers:
        return [path for path, gone in zip(doomed, sweepers.map(delete, doomed), strict=True) if gone]


def _candidates(folder: CrawlFolder, newest: int, keep: int) -> Iterator[FileInfo]:
    """List state, and the folders of rounds that newly are, or lately were, old enough to be thinned."""
    yield from folder.storage.list(layout.STATE)
    for number in range(max(1, newest - 2 * keep + 1), newest + 1):
        if number <= newest - keep:
            yield from folder.storage.list(layout.round_folder(number))
            yield from folder.storage.list(layout.lease_folder(number))
        else:
            yield from folder.storage.list(layout.staged_folder(number))
        yield from folder.storage.list(layout.warc_folder(number))


class _Needed:
    """What may not be deleted, read from the manifests."""

    def __init__(self, folder: CrawlFolder, newest: int, keep: int) -> None:
        self.newest = newest
        self.thinned = newest - keep
        kept = [folder.read_manifest(number) for number in range(max(1, self.thinned + 1), newest + 1)]
        self.names = {name for manifest in kept for name in _names(manifest)}
        self._folder = folder
        self._own: dict[int, frozenset[str] | None] = {m.round: frozenset(_names(m)) for m in kept}

    def keeps(self, path: str) -> bool:
        """Return whether a listed file must stay."""
        number = _round_of(path)
        if number is None or number > self.newest or path in self.names:
            return True
        if path.startswith(layout.STATE):
            return False
        own = self._names_of_round(number)
        if own is None or path in own:
            return True
        inside = _ROUND_FILE.match(path)
        if inside is None:
            return False
        is_staged = inside[2].startswith("staged/")
        return bool(_RECORD.fullmatch(inside[2])) or not (is_staged or number <= self.thinned)

    def _names_of_round(self, number: int) -> frozenset[str] | None:
        """Return what the round's own manifest names; None, so that all stays, if it cannot be read."""
        if number not in self._own:
            try:
                self._own[number] = frozenset(_names(self._folder.read_manifest(number)))
            except CrawlFolderError:
                self._own[number] = None
        return self._own[number]


def _names(manifest: Manifest) -> Iterator[str]:
    for entry in manifest.files:
        yield entry.path
        yield entry.staged_path


def _round_of(path: str) -> int | None:
    """Return the round that made a file, as its name tells; None when it does not."""
    pattern = _STATE_ROUND if path.startswith(layout.STATE) else _ROUND_FILE
    match = pattern.search(path) or _LEASE_FILE.match(path)
    return int(match[1]) if match else layout.warc_round(path)
