"""A wheel of this tree in an environment that holds nothing else. Runs only when PACKAGING is set."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LAYERS = ("schemas", "crawler", "connectors", "transforms", "pipelines", "runners")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave this folder out of a run that does not ask for it."""
    return None if os.environ.get("PACKAGING") else True


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel, and a folder to work in from which no checkout is seen."""

    python: Path
    folder: Path
    wheel: Path

    def run(self, *arguments: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        """Run the environment's Python in the empty folder."""
        bare = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
        return subprocess.run(
            [self.python, *arguments],
            cwd=self.folder,
            env=bare,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )

    def names(self) -> list[str]:
        """Return the files in the wheel."""
        return zipfile.ZipFile(self.wheel).namelist()


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what a package is built from, so that building leaves nothing in the tree."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("setup.py", "pyproject.toml", "README.md", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    for layer in LAYERS:
        shutil.copytree(ROOT / layer, folder / layer, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory, checkout: Path) -> Iterator[Installed]:
    """The wheel, built and installed with its dependencies."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder / "dist", checkout],
        check=True,
    )
    [wheel] = (folder / "dist").glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    subprocess.run(
        [python, *pip[1:], "install", "--constraint", checkout / "constraints.txt", wheel],
        check=True,
        timeout=1500,
    )
    work = folder / "work"
    work.mkdir()
    yield Installed(python, work, wheel)
