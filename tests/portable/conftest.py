"""Crawls of one toy web on several engines. Nothing here runs unless PORTABLE is set."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.portable.crawls import EngineCrawl, engine
from tests.portable.services import prism_binary

ENGINES = ("in_memory", "multi_process", "portable_pool", "prism_pool")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave this folder out of a run that does not ask for it."""
    return None if os.environ.get("PORTABLE") else True


@pytest.fixture(scope="session")
def prism() -> str:
    """The Prism binary, built if need be."""
    return prism_binary()


@pytest.fixture(scope="session")
def crawls(tmp_path_factory: pytest.TempPathFactory, prism: str) -> Iterator[dict[str, EngineCrawl]]:
    """A crawl of three rounds on each engine."""
    made = {}
    for name in ENGINES:
        with engine(name, tmp_path_factory.mktemp(name)) as crawl:
            crawl.inject()
            result = crawl.run("--rounds=3")
            assert result.returncode == 0, f"{name}: {result.stderr[-3000:]}"
        made[name] = crawl
    yield made
