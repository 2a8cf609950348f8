"""Emulators of object stores on loopback, started and ended with the run that asks for this folder.

STORES=gs or STORES=s3 leaves the other store out.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.files import Storage, open_storage
from tests.fakes.emulators import gcs_emulator, s3_emulator
from tests.fakes.faulty_proxy import FaultyProxy, faulty_proxy
from tests.fakes.remote_crawl import RemoteCrawl
from tests.fakes.toy_server import serve
from tests.fakes.toy_web import ToyWeb

SECRET = "secret-of-the-store"
ADDRESS = {"gs": "STORAGE_EMULATOR_HOST", "s3": "AWS_ENDPOINT_URL"}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave this folder out unless the command line names it."""
    return None if any("tests/stores" in str(arg) for arg in config.invocation_params.args) else True


@pytest.fixture(scope="session")
def gcs_address() -> Iterator[str]:
    """An emulator of Google Cloud Storage with the bucket ``crawls``."""
    with gcs_emulator() as address:
        yield address


@pytest.fixture(scope="session")
def s3_address() -> Iterator[str]:
    """An emulator of S3 with the bucket ``crawls``."""
    with s3_emulator() as address:
        yield address


@pytest.fixture(params=os.environ.get("STORES", "gs s3").split())
def scheme(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """One kind of store, its emulator named in the environment."""
    name: str = request.param
    if name == "gs":
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", request.getfixturevalue("gcs_address"))
    else:
        monkeypatch.setenv("AWS_ENDPOINT_URL", request.getfixturevalue("s3_address"))
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "KEYOFTHECRAWL")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    return name


@pytest.fixture
def storage(scheme: str) -> Storage:
    """An empty storage of its own."""
    return open_storage(f"{scheme}://crawls/test-{secrets.token_hex(8)}")


@contextlib.contextmanager
def toy_crawl(root: str, pages: int = 6) -> Iterator[RemoteCrawl]:
    """Serve a toy web of its own and make a crawl of it at ``root``; no round was run yet."""
    web = ToyWeb(sites=6, pages=pages, robots_delay_seconds=0.3)
    with serve(web) as server:
        crawl = RemoteCrawl(root, web, server)
        crawl.inject()
        yield crawl


@pytest.fixture(scope="session")
def local_tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple]]:
    """What three rounds find when the crawl folder is on a local disk."""
    folder = tmp_path_factory.mktemp("local")
    with toy_crawl(str(folder / "crawl")) as crawl:
        assert crawl.round("--rounds=3")[0] == 0
        return crawl.tables(folder / "copy")


@pytest.fixture
def proxy(scheme: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyProxy]:
    """A proxy before the store that lets everything pass until a test says otherwise."""
    with faulty_proxy(os.environ[ADDRESS[scheme]], every=0) as served:
        monkeypatch.setenv(ADDRESS[scheme], served.address)
        yield served


@pytest.fixture
def crawl(proxy: FaultyProxy, scheme: str) -> Iterator[RemoteCrawl]:
    """A fresh crawl of the toy web on the store, behind the proxy."""
    with toy_crawl(f"{scheme}://crawls/toy-{secrets.token_hex(6)}") as made:
        yield made
