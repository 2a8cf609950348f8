"""Case files of other projects: JSON lines in the folder that CASES_DIR names."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave this folder out of a run that names no case files."""
    return None if os.environ.get("CASES_DIR") else True


def load_cases(name: str) -> list[dict[str, Any]]:
    """Return the records of one case file, in order."""
    path = Path(os.environ["CASES_DIR"]) / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


@pytest.fixture(scope="session")
def cases() -> Any:
    """Return the function that loads a case file by its name."""
    return load_cases
