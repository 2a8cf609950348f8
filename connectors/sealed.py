"""JSON documents that carry their own digest, so that a changed byte is noticed and named."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from connectors.faults import DamagedFile
from connectors.files import Storage

SEAL = "digest"


def canonical(document: dict[str, Any]) -> bytes:
    """Return the one JSON encoding of a document: keys sorted, no spaces, ASCII."""
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode("ascii")


def seal(document: dict[str, Any]) -> bytes:
    """Return the document as JSON with a member ``digest``: BLAKE2b-128, hex, of the rest."""
    return canonical({**document, SEAL: _digest(document)})


def parse(data: bytes, path: str) -> dict[str, Any]:
    """Return the JSON object in ``data``, its digest not yet checked; raise DamagedFile if it is none."""
    try:
        document = json.loads(data)
    except ValueError as error:
        raise DamagedFile(f"{path} is damaged: not JSON ({error})") from error
    if not isinstance(document, dict):
        raise DamagedFile(f"{path} is damaged: not a JSON object")
    return document


def checked(document: dict[str, Any], path: str) -> dict[str, Any]:
    """Return a parsed document without its digest; raise DamagedFile when the two disagree."""
    rest = {name: value for name, value in document.items() if name != SEAL}
    if document.get(SEAL) != _digest(rest):
        raise DamagedFile(f"{path} is damaged: its content does not match its digest")
    return rest


def unseal(data: bytes, path: str) -> dict[str, Any]:
    """Return what seal() was given; raise DamagedFile, naming ``path``, for anything else."""
    return checked(parse(data, path), path)


def read_checked(storage: Storage, path: str, digest: str) -> bytes:
    """Return a file whose BLAKE2b-128 digest, hex, is known; raise DamagedFile if it is gone or differs."""
    try:
        data = storage.read_bytes(path)
    except FileNotFoundError as error:
        raise DamagedFile(f"{storage.root}/{path} is missing") from error
    if hashlib.blake2b(data, digest_size=16).hexdigest() != digest:
        raise DamagedFile(f"{storage.root}/{path} is damaged: its content does not match its digest")
    return data


def _digest(document: dict[str, Any]) -> str:
    return hashlib.blake2b(canonical(document), digest_size=16).hexdigest()
