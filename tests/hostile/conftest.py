"""The long proof against the hostile web: only where HOSTILE is set."""

from __future__ import annotations

import os
from pathlib import Path


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave this folder out of an ordinary run."""
    return None if os.environ.get("HOSTILE") else True
