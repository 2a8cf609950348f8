"""Kills by the hundred take their time: collected only where CHAOS is set."""

from __future__ import annotations

import os
from pathlib import Path


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave this folder out of a run that does not ask for it."""
    return None if os.environ.get("CHAOS") else True
