"""A round submitted for real, as far as a machine without the service can go."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from apache_beam.portability.api import beam_runner_api_pb2

from connectors.files import Storage, open_storage
from pipelines import inject, plan
from runners.options import parse_instant
from schemas.flags import CrawlFlags
from tests.fakes.emulators import gcs_emulator
from tests.fakes.google_services import GoogleServices, google_services, write_credentials
from transforms.planning import commit_plan

ROOT = Path(__file__).parents[2]
AS_OF = "2031-05-04T03:02:01Z"
SALT = "salt-of-the-test"
POLICY = "domains:\n  spam.example: {exclude: true}\n"
SEEDS = ("http://www.one.example/", "http://www.two.example/")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave this folder out unless the command line names it."""
    return None if any("tests/dataflow" in str(arg) for arg in config.invocation_params.args) else True


@dataclass
class Submission:
    """What came of one command: how it ended, what it said, what the service and the store were given."""

    code: int
    out: str
    job: dict[str, Any]
    staged: Storage

    @property
    def pool(self) -> dict[str, Any]:
        """The only worker pool of the job."""
        (pool,) = self.job["environment"]["workerPools"]
        return dict(pool)

    def file(self, name: str) -> bytes:
        """Return the staged file of this name."""
        (path,) = [info.path for info in self.staged.list() if info.path.rpartition("/")[2] == name]
        return self.staged.read_bytes(path)

    @property
    def graph(self) -> beam_runner_api_pb2.Pipeline:
        """The job graph as the service would get it."""
        return beam_runner_api_pb2.Pipeline.FromString(self.file("pipeline.pb"))


@pytest.fixture(scope="session")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GoogleServices]:
    """The emulated services, named in the environment."""
    before = dict(os.environ)
    with google_services() as served, gcs_emulator() as store:
        credentials = tmp_path_factory.mktemp("account") / "key.json"
        write_credentials(credentials, served)
        os.environ.update(
            STORAGE_EMULATOR_HOST=store,
            NO_GCE_CHECK="true",
            GOOGLE_APPLICATION_CREDENTIALS=str(credentials),
        )
        yield served
    os.environ.clear()
    os.environ.update(before)


def arguments(crawl: str, stage: str, port: int) -> list[str]:
    """Return the command line of docs/dataflow.md, pointed at the local services."""
    return [
        f"--crawl={crawl}",
        "--runner=DataflowRunner",
        "--project=my-project",
        "--region=us-central1",
        "--service_account_email=crawler@my-project.iam.gserviceaccount.com",
        f"--temp_location={stage}/tmp",
        f"--staging_location={stage}/stage",
        "--setup_file=./setup.py",
        "--num_workers=3",
        "--subnetwork=regions/us-central1/subnetworks/crawl",
        "--contact=https://example.org/bot",
        f"--as_of={AS_OF}",
        "--run_id=nightly",
        f"--dataflow_endpoint=http://localhost:{port}",
    ]


def submit(services: GoogleServices, name: str) -> Submission:
    """Run the command on the crawl ``name`` and return what came of it."""
    crawl, stage = f"gs://crawls/{name}", f"gs://crawls/staging-{name}"
    command = [sys.executable, "-m", "pipelines.round", *arguments(crawl, stage, services.port)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
        check=False,
    )
    assert services.jobs, done.stdout
    return Submission(done.returncode, done.stdout, services.jobs[-1], open_storage(f"{stage}/stage"))


def make_crawl(name: str, folder: Path) -> None:
    """Make a crawl with seeds and a policy on the emulated store."""
    policy = folder / "policy.yaml"
    policy.write_text(POLICY)
    flags = [f"--crawl=gs://crawls/{name}", f"--salt={SALT}", f"--policy={policy}"]
    assert inject.main([*flags, *SEEDS]) == 0


@pytest.fixture(scope="session")
def fresh(services: GoogleServices, tmp_path_factory: pytest.TempPathFactory) -> Submission:
    """A new round, submitted."""
    make_crawl("fresh", tmp_path_factory.mktemp("fresh"))
    return submit(services, "fresh")


@pytest.fixture(scope="session")
def resumed(services: GoogleServices, tmp_path_factory: pytest.TempPathFactory) -> Submission:
    """A round that another engine planned and did not finish, submitted."""
    make_crawl("resumed", tmp_path_factory.mktemp("resumed"))
    folder = plan.CrawlFolder.at("gs://crawls/resumed")
    view, planned = plan.plan_of(folder, CrawlFlags(shards=2), parse_instant(AS_OF))
    assert planned is not None
    commit_plan(view, planned)
    return submit(services, "resumed")
