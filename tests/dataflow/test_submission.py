"""The job that the service is given: options, graph, coders, packages. Nothing of it is executed here."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from apache_beam.portability.api import beam_runner_api_pb2, schema_pb2

from connectors import sealed
from connectors.files import open_storage
from runners.options import parse_instant
from tests.dataflow.conftest import AS_OF, ROOT, SALT, Submission

# Numbers of the service's v1b3 interface.
JOB_TYPE_BATCH, WORKER_IP_PRIVATE, AUTOSCALING_ALGORITHM_NONE = 1, 2, 1

PRIMITIVE = {"string_utf8", "bytes", "varint", "bool", "double", "global_window", "row"}
COMPOSED = {"kv", "iterable", "tuple", "nullable", "length_prefix", "windowed_value"}
STEPS = [
    "PlanRound/AbsorbSeeds",
    "PlanRound/SelectDue",
    "PlanRound/PackShards",
    "PlanRound/DealShards",
    "FetchShards/Fetch",
    "ParseSegments/Parse",
    "MarkDuplicates/CompareSketches/TellVerdicts",
    "SettleSegments/Settle",
    "SeenUrls/Probe",
    "UpdateState/Update",
    "IndexCaptures/MergeIndex",
    "CommitRound/Commit",
]
# References to files, numbers and names: what may travel between two steps.
TRAVELS = {
    "absorbed_path",
    "bytes",
    "consumed",
    "data",
    "digest",
    "group",
    "hosts_path",
    "kind",
    "level",
    "max_key",
    "min_key",
    "name",
    "outcomes_path",
    "parsed_path",
    "partition",
    "path",
    "robots_path",
    "robots_row_group",
    "row_group",
    "rows",
    "segment",
    "shard",
    "sketches",
    "sketches_path",
    "staged_path",
    "table",
    "task",
    "tasks",
    "urls_path",
    "value",
}
READ_DOFNS = """
import json, sys
from apache_beam.internal import pickler
from apache_beam.portability.api import beam_runner_api_pb2
pickler.set_library("cloudpickle")
graph = beam_runner_api_pb2.Pipeline.FromString(open(sys.argv[1], "rb").read())
found = {}
for transform in graph.components.transforms.values():
    if transform.spec.urn == "beam:transform:pardo:v1":
        payload = beam_runner_api_pb2.ParDoPayload.FromString(transform.spec.payload)
        fn = pickler.loads(payload.do_fn.payload)[0]
        module = sys.modules[type(fn).__module__]
        spec = getattr(fn, "spec", None)
        found[transform.unique_name] = {
            "class": f"{type(fn).__module__}.{type(fn).__name__}",
            "file": getattr(module, "__file__", ""),
            "spec": {name: getattr(spec, name, None) for name in ("as_of", "salt", "run_id", "crawl")},
        }
print(json.dumps(found))
"""


def test_a_job_that_ends_without_a_manifest_is_a_failure(fresh: Submission) -> None:
    assert fresh.code == 1, fresh.out
    assert "round: round 1 ended without a manifest and is not committed; to resume:" in fresh.out
    assert open_storage("gs://crawls/fresh").list("rounds/000001/manifest") == []


def test_the_workers_are_as_the_preset_says(fresh: Submission) -> None:
    pool = fresh.pool
    assert pool["numWorkers"] == 3
    assert pool["machineType"] == "n2-standard-4"
    assert pool["ipConfiguration"] == WORKER_IP_PRIVATE
    assert pool["autoscalingSettings"]["algorithm"] == AUTOSCALING_ALGORITHM_NONE
    assert pool["subnetwork"] == "regions/us-central1/subnetworks/crawl"
    environment = fresh.job["environment"]
    assert fresh.job["type"] == JOB_TYPE_BATCH
    assert environment["serviceAccountEmail"] == "crawler@my-project.iam.gserviceaccount.com"
    assert "use_multiple_sdk_containers" in environment["experiments"]
    options = environment["sdkPipelineOptions"]["options"]
    assert options["number_of_worker_harness_threads"] == 1
    assert options["save_main_session"] is False
    assert options["streaming"] is False


def test_the_graph_has_the_steps_of_a_round(fresh: Submission) -> None:
    names = {transform.unique_name for transform in fresh.graph.components.transforms.values()}
    assert [step for step in STEPS if step not in names] == []


def test_what_is_shuffled_are_rows_and_primitives(fresh: Submission) -> None:
    components = fresh.graph.components
    checked = 0
    for transform in components.transforms.values():
        if transform.spec.urn != "beam:transform:group_by_key:v1":
            continue
        (grouped,) = transform.inputs.values()
        coder = components.coders[components.pcollections[grouped].coder_id]
        key, value = coder.component_coder_ids
        assert set(urns(components, key)) <= PRIMITIVE | COMPOSED, transform.unique_name
        if "/ReshufflePerKey/" in transform.unique_name:
            # Beam's own Reshuffle adds the element's timestamp and pane, under coders of its own.
            value = components.coders[value].component_coder_ids[0]
        assert set(urns(components, value)) <= PRIMITIVE | COMPOSED, transform.unique_name
        assert fields(components, value) <= TRAVELS, transform.unique_name
        checked += 1
    assert checked > 15


def test_no_element_is_pickled(fresh: Submission) -> None:
    components = fresh.graph.components
    pickled = [
        collection.unique_name
        for name, collection in components.pcollections.items()
        if not set(urns(components, collection.coder_id)) <= PRIMITIVE | COMPOSED
        and "/ReshufflePerKey/" not in collection.unique_name
        and name not in side_inputs(components)
    ]
    assert pickled == []


def side_inputs(components: beam_runner_api_pb2.Components) -> set[str]:
    """Return the collections that a step reads beside its elements: Beam gives them a coder of its own here."""
    found = set()
    for transform in components.transforms.values():
        if transform.spec.urn == "beam:transform:pardo:v1":
            payload = beam_runner_api_pb2.ParDoPayload.FromString(transform.spec.payload)
            found |= {transform.inputs[tag] for tag in payload.side_inputs}
    return found


def urns(components: beam_runner_api_pb2.Components, coder_id: str) -> Iterator[str]:
    """Yield the kinds of coder that a coder is made of."""
    coder = components.coders[coder_id]
    yield coder.spec.urn.removeprefix("beam:coder:").removesuffix(":v1")
    for inner in coder.component_coder_ids:
        yield from urns(components, inner)


def fields(components: beam_runner_api_pb2.Components, coder_id: str) -> set[str]:
    """Return the names of all fields of the rows in a coder."""
    coder = components.coders[coder_id]
    names = {name for inner in coder.component_coder_ids for name in fields(components, inner)}
    if coder.spec.urn == "beam:coder:row:v1":
        schema = schema_pb2.Schema.FromString(coder.spec.payload)
        names |= {field.name for field in schema.fields}
    return names


def test_the_package_has_what_workers_import_and_no_main_session(fresh: Submission) -> None:
    names = {package["name"] for package in fresh.pool["packages"]}
    assert "workflow.tar.gz" in names
    assert not [name for name in names if "main_session" in name]
    with tarfile.open(fileobj=io.BytesIO(fresh.file("workflow.tar.gz"))) as archive:
        members = {name.partition("/")[2] for name in archive.getnames()}
    packages = (
        "schemas",
        "crawler",
        "connectors",
        "connectors/files",
        "connectors/runs",
        "transforms",
        "transforms/gate",
    )
    for package in packages:
        sources = {str(path.relative_to(ROOT)) for path in (ROOT / package).glob("*.py")}
        assert sources <= members, sources - members
    assert not [name for name in members if name.startswith(("tests/", "docs/"))]


@pytest.mark.timeout(1800)
def test_an_empty_environment_with_the_package_holds_every_step(
    fresh: Submission, resumed: Submission, tmp_path: Path
) -> None:
    """Each DoFn of the graph is unpickled where nothing but the staged package is installed."""
    python = install(fresh, tmp_path)
    for submission in (fresh, resumed):
        found = dofns(python, submission, tmp_path)
        own = {name: fn for name, fn in found.items() if fn["class"].startswith("transforms.")}
        assert len(own) > 15
        assert all("site-packages" in fn["file"] for fn in own.values())
        assert not [fn for fn in found.values() if fn["class"].startswith(("__main__", "tests."))]
        specs = [fn["spec"] for fn in own.values() if fn["spec"]["salt"] is not None]
        assert len(specs) > 8
        for spec in specs:
            assert spec["as_of"] == parse_instant(AS_OF)
            assert spec["salt"] == SALT
            assert spec["run_id"] == ("nightly" if submission is fresh else "plan")


def install(submission: Submission, folder: Path) -> Path:
    """Install the staged package as a worker does, into an environment of its own."""
    archive = folder / "workflow.tar.gz"
    archive.write_bytes(submission.file("workflow.tar.gz"))
    subprocess.run([sys.executable, "-m", "venv", folder / "worker"], check=True)
    python = folder / "worker/bin/python"
    pip = [
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-compile",
        "--constraint",
        ROOT / "constraints.txt",
    ]
    subprocess.run([*pip, f"{archive}[gcp]"], check=True, cwd=folder)
    return python


def dofns(python: Path, submission: Submission, folder: Path) -> dict[str, dict]:
    """Return class, module file and spec of each DoFn of the graph, as the environment sees them."""
    graph = folder / "pipeline.pb"
    graph.write_bytes(submission.file("pipeline.pb"))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [python, "-c", READ_DOFNS, graph]
    return json.loads(
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True).stdout
    )


def test_a_plan_that_stands_is_submitted_as_it_is(resumed: Submission) -> None:
    assert resumed.code == 1
    storage = open_storage("gs://crawls/resumed")
    plan = sealed.unseal(storage.read_bytes("rounds/000001/plan.json"), "plan.json")
    assert plan["as_of"] == parse_instant(AS_OF)
    policy = sealed.unseal(storage.read_bytes(plan["policy_path"]), "policy")
    assert "spam.example" in json.dumps(policy)
    assert storage.read_bytes("crawl.json").count(SALT.encode()) == 1
    names = {transform.unique_name for transform in resumed.graph.components.transforms.values()}
    assert "PlanRound/ReadPlan/Impulse" in names or "PlanRound/ReadPlan" in names
    assert "PlanRound/SelectDue" not in names
    assert "FetchShards/Fetch" in names
