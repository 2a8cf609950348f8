"""A crawl folder: its identity, its committed rounds, its seeds waiting to be absorbed."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeVar

from connectors import layout, sealed
from connectors.faults import CrawlFolderError, DamagedFile, LostRace
from connectors.files import AlreadyThere, NotAFolder, Storage, open_storage
from schemas.crawl import CrawlIdentity
from schemas.manifest import FORMAT_VERSION, FileEntry, Manifest

Row = TypeVar("Row", CrawlIdentity, FileEntry)


@dataclass(frozen=True)
class CrawlFolder:
    """What a crawl folder holds, by name. Picklable; safe to share between threads.

    Methods raise StorageError when the storage refuses, CrawlFolderError when the folder
    is no crawl or of another format version, DamagedFile (a CrawlFolderError) when a file does not
    hold what was written.
    """

    storage: Storage

    @classmethod
    def at(cls, root: str) -> CrawlFolder:
        """Return the crawl folder at a local path, gs://bucket/prefix or s3://bucket/prefix."""
        return cls(open_storage(root))

    @property
    def root(self) -> str:
        """The folder as an operator writes it."""
        return self.storage.root

    def create(self, identity: CrawlIdentity) -> CrawlIdentity:
        """Write crawl.json if there is none; return the identity that the crawl has."""
        try:
            data = json.dumps(identity._asdict(), indent=1, ensure_ascii=False).encode()
            self.storage.write_new(layout.CRAWL, data + b"\n")
        except AlreadyThere:
            return self.identity()
        except NotAFolder as error:
            raise CrawlFolderError(str(error)) from error
        return identity

    def find_identity(self) -> CrawlIdentity | None:
        """Return the crawl's identity, or None when the folder is missing or holds no crawl yet."""
        try:
            data = self.storage.read_bytes(layout.CRAWL)
        except FileNotFoundError:
            return None
        except NotAFolder as error:
            raise CrawlFolderError(str(error)) from error
        name = f"{self.root}/{layout.CRAWL}"
        document = sealed.parse(data, name)
        self._check_version(document, name)
        return _from_members(CrawlIdentity, document, name)

    def identity(self) -> CrawlIdentity:
        """Return the crawl's identity; raise CrawlFolderError when there is no crawl."""
        identity = self.find_identity()
        if identity is None:
            raise CrawlFolderError(
                f"no crawl at {self.root}: {layout.CRAWL} is missing; "
                f"make one with: python -m pipelines.inject --crawl={self.root} --seeds=FILE"
            )
        return identity

    def newest_round(self) -> int:
        """Return the number of the newest committed round, 0 before the first.

        Costs one listing of the round folders and, as a rule, one or two look-ups.
        """
        names = self.storage.list_folders(layout.ROUNDS)
        numbers = sorted((n for n in map(layout.round_number, names) if n), reverse=True)
        return next((n for n in numbers if self.storage.exists(layout.manifest_path(n))), 0)

    def newest_manifest(self) -> Manifest | None:
        """Return the manifest of the newest committed round, None before the first."""
        number = self.newest_round()
        return self.read_manifest(number) if number else None

    def read_manifest(self, number: int) -> Manifest:
        """Return the manifest of a committed round; raise CrawlFolderError if it is not committed."""
        path = layout.manifest_path(number)
        try:
            data = self.storage.read_bytes(path)
        except FileNotFoundError as error:
            raise CrawlFolderError(f"round {number} of {self.root} is not committed") from error
        name = f"{self.root}/{path}"
        document = sealed.parse(data, name)
        self._check_version(document, name)
        manifest = manifest_of(sealed.checked(document, name), name)
        if manifest.round != number:
            raise DamagedFile(f"{name} is damaged: it is the manifest of round {manifest.round}")
        return manifest

    def commit_manifest(self, manifest: Manifest) -> Manifest:
        """Commit the round: write its manifest create-only, and return the manifest that stands.

        Idempotent for one run id: a retry returns what its earlier attempt committed. When another
        run has committed this round, raise LostRace; what it committed stands untouched.
        """
        _check_commit(manifest)
        path = layout.manifest_path(manifest.round)
        try:
            self.storage.write_new(path, sealed.seal(document_of(manifest)))
        except AlreadyThere as error:
            standing = self.read_manifest(manifest.round)
            if standing.run_id == manifest.run_id:
                return standing
            raise LostRace(
                f"round {manifest.round} of {self.root} was committed by another run "
                f"({standing.run_id}); nothing of this run was kept"
            ) from error
        return manifest

    def remember_run(self, manifest: Manifest) -> None:
        """Note which round a run committed, so that finding it later costs one look-up. Idempotent."""
        note = sealed.seal({"run_id": manifest.run_id, "round": manifest.round})
        with contextlib.suppress(AlreadyThere):
            self.storage.write_new(layout.run_path(manifest.run_id), note)

    def round_of_run(self, run_id: str) -> int | None:
        """Return the round that this run committed, or None. Only the newest need not be noted yet."""
        path = layout.run_path(run_id)
        try:
            return int(sealed.unseal(self.storage.read_bytes(path), f"{self.root}/{path}")["round"])
        except FileNotFoundError:
            newest = self.newest_manifest()
        return newest.round if newest is not None and newest.run_id == run_id else None

    def publish_staged(self, manifest: Manifest, threads: int = 8) -> int:
        """Move the committed round's files from where they are staged to their names; return how many.

        Idempotent, and safe to run twice at once: a publication that was interrupted is finished, one that is
        done costs one listing. Raises DamagedFile for a file that is in neither place.
        """
        listing = self.storage.list(layout.staged_folder(manifest.round))
        waiting = {info.path for info in listing}
        entries = [entry for entry in manifest.files if entry.staged_path]
        if waiting.isdisjoint(entry.staged_path for entry in entries):
            return 0

        def publish(entry: FileEntry) -> int:
            try:
                if entry.staged_path not in waiting and self.storage.exists(entry.path):
                    return 0
                self.storage.move(entry.staged_path, entry.path)
            except FileNotFoundError as error:
                raise DamagedFile(f"{self.root}/{entry.path} is missing: it was never published") from error
            return 1

        with ThreadPoolExecutor(threads, "publish") as movers:
            return sum(movers.map(publish, entries))

    def unfinished_round(self) -> int | None:
        """Return the number of the round that has a plan but no manifest, or None."""
        number = self.newest_round() + 1
        return number if self.storage.exists(layout.plan_path(number)) else None

    def write_inject(self, document: dict[str, Any], at: float, token: str) -> str:
        """Store seeds or policy given at ``at`` (UTC epoch seconds) for the next plan; return the name."""
        path = layout.inject_path(at, token)
        self.storage.write_new(path, sealed.seal(document))
        return path

    def read_inject(self, path: str) -> dict[str, Any]:
        """Return what write_inject() was given."""
        return sealed.unseal(self.storage.read_bytes(path), f"{self.root}/{path}")

    def inject_paths(self, absorbed: Collection[str] = ()) -> list[str]:
        """Return the names of the inject files not yet absorbed, oldest first."""
        known = frozenset(absorbed)
        listing = self.storage.list(layout.INJECT)
        return [info.path for info in listing if info.path.endswith(".json") and info.path not in known]

    def _check_version(self, document: dict[str, Any], name: str) -> None:
        version = document.get("format_version")
        if not isinstance(version, int):
            raise DamagedFile(f"{name} is damaged: it has no format_version")
        if version > FORMAT_VERSION:
            raise CrawlFolderError(
                f"{name} has format version {version}; this program knows versions up to "
                f"{FORMAT_VERSION}: use a newer program"
            )
        if version < FORMAT_VERSION:
            raise CrawlFolderError(
                f"{name} has format version {version}; this program needs version {FORMAT_VERSION} "
                "and cannot migrate it: use the program that made it, or start a new crawl"
            )


def document_of(manifest: Manifest) -> dict[str, Any]:
    """Return the manifest as JSON members; manifest_of() is the inverse."""
    document = asdict(manifest)
    document["files"] = [entry._asdict() for entry in manifest.files]
    return document


def manifest_of(document: dict[str, Any], name: str) -> Manifest:
    """Return the manifest that ``document`` describes; raise DamagedFile, naming ``name``, if it is none."""
    members = {field.name: document[field.name] for field in fields(Manifest) if field.name in document}
    try:
        members["files"] = [entry_of(member, name) for member in members["files"]]
        return Manifest(**members)
    except (TypeError, KeyError) as error:
        raise DamagedFile(f"{name} is damaged: {error}") from error


def entry_of(document: dict[str, Any], name: str) -> FileEntry:
    """Return the file entry that ``document`` describes; raise DamagedFile if it is none."""
    return _from_members(FileEntry, document, name)


def _from_members(row: type[Row], document: dict[str, Any], name: str) -> Row:
    try:
        return row(**{field: document[field] for field in row._fields if field in document})
    except TypeError as error:
        raise DamagedFile(f"{name} is damaged: {error}") from error


def _check_commit(manifest: Manifest) -> None:
    """Raise ValueError for a manifest that no correct round could write."""
    if manifest.round < 1 or manifest.parent != (manifest.round - 1 or None):
        raise ValueError(f"round {manifest.round} cannot have parent {manifest.parent}")
    folder = layout.staged_folder(manifest.round)
    for entry in manifest.files:
        if entry.staged_path and not entry.staged_path.startswith(folder):
            raise ValueError(f"{entry.staged_path} is not in {folder}")
