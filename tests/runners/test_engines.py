"""Each engine's presets, and what it refuses: one line that names the flag and the remedy."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from runners import engines
from runners.options import UsageError
from runners.round_options import parse_round

ROOT = Path(__file__).parents[2]


def options_of(*arguments: str) -> dict:
    crawl = () if any(a.startswith("--crawl=") for a in arguments) else ("--crawl=/crawls/toy",)
    return engines.pipeline_options(parse_round([*crawl, *arguments]).job).get_all_options()


def slots_of(*arguments: str) -> int:
    job = parse_round(["--crawl=/crawls/toy", *arguments]).job
    return engines.worker_slots(job, engines.pipeline_options(job))


FLINK = ("--runner=FlinkRunner", "--flink_master=localhost:8081", "--parallelism=2")
FAR = ("--runner=FlinkRunner", "--flink_master=flink.example:8081", "--parallelism=2")
DATAFLOW = (
    "--runner=DataflowRunner",
    "--crawl=gs://bucket/crawl",
    "--project=my-project",
    "--region=us-central1",
    "--temp_location=gs://bucket/tmp",
    "--setup_file=./setup.py",
)


def without(arguments: tuple[str, ...], flag: str) -> list[str]:
    return [argument for argument in arguments if not argument.startswith(f"--{flag}=")]


REFUSED = {
    "a runner nobody knows": (["--runner=SparkRunner"], "--runner=SparkRunner", "FnApiRunner"),
    "workers in memory": (
        ["--direct_num_workers=2", "--direct_running_mode=in_memory"],
        "--direct_num_workers=2",
        "multi_processing",
    ),
    "a worker without a shard": (["--direct_num_workers=2", "--shards=1"], "--shards=1", "--shards=2"),
    "workers below 0": (["--direct_num_workers=-1"], "--direct_num_workers=-1", "0"),
    "an embedded service with workers": (
        ["--runner=PortableRunner", "--direct_num_workers=2"],
        "--direct_num_workers=2",
        "--job_endpoint",
    ),
    "a job server elsewhere, workers here": (
        ["--runner=PortableRunner", "--job_endpoint=jobs.example:8099", "--environment_type=LOOPBACK"],
        "LOOPBACK",
        "EXTERNAL",
    ),
    "a job server elsewhere, crawl here": (
        [
            "--runner=PortableRunner",
            "--job_endpoint=jobs.example:8099",
            "--environment_config=jobs.example:50000",
        ],
        "--crawl=/crawls/toy",
        "--shared_filesystem",
    ),
    "a pool elsewhere, crawl here": (
        [*FLINK, "--environment_config=workers.example:50000"],
        "--environment_config=workers.example:50000",
        "--shared_filesystem",
    ),
    "a pool without address": (
        ["--runner=PortableRunner", "--environment_type=EXTERNAL"],
        "--environment_type=EXTERNAL",
        "--environment_config=HOST:PORT",
    ),
    "a cluster elsewhere, workers here": ([*FAR, "--environment_type=LOOPBACK"], "LOOPBACK", "EXTERNAL"),
    "a cluster elsewhere, crawl here": ([*FAR], "--crawl=/crawls/toy", "--shared_filesystem"),
    "more workers than slots": (
        [*FLINK, "--sdk_worker_parallelism=4"],
        "--sdk_worker_parallelism=4",
        "--parallelism=2",
    ),
    "slots without a shard": ([*FLINK, "--shards=1"], "--shards=1", "--shards=2"),
    "no slots": (["--runner=FlinkRunner", "--parallelism=0"], "--parallelism=0", "task slots"),
    "no such jar": ([*FLINK, "--flink_job_server_jar=/none.jar"], "/none.jar", "--flink_job_server_jar"),
    "no such Prism": (["--runner=PrismRunner", "--prism_location=/none"], "/none", "--prism_location"),
    "Dataflow without project": (without(DATAFLOW, "project"), "--project", "--project=..."),
    "Dataflow without region": (without(DATAFLOW, "region"), "--region", "--region=..."),
    "Dataflow without temp": (without(DATAFLOW, "temp_location"), "--temp_location", "--temp_location=..."),
    "Dataflow, crawl here": (
        [*without(DATAFLOW, "crawl"), "--crawl=/crawls/toy"],
        "--crawl=/crawls/toy",
        "gs://",
    ),
    "Dataflow, crawl on S3": (
        [*without(DATAFLOW, "crawl"), "--crawl=s3://bucket/crawl"],
        "--crawl=s3://bucket/crawl",
        "--sdk_container_image",
    ),
    "Dataflow without code": (without(DATAFLOW, "setup_file"), "--setup_file", "--sdk_container_image"),
    "Dataflow, project number": (
        [*without(DATAFLOW, "project"), "--project=1234567890"],
        "--project=1234567890",
        "project id",
    ),
    "Dataflow, staging here": (
        [*DATAFLOW, "--staging_location=/tmp/stage"],
        "--staging_location=/tmp/stage",
        "gs://",
    ),
    "Dataflow, a stream": ([*DATAFLOW, "--streaming"], "--streaming", "batch"),
    "Dataflow, idle workers": ([*DATAFLOW, "--num_workers=3", "--shards=2"], "--num_workers=3", "--shards=3"),
    "Dataflow, no threads": (
        [*DATAFLOW, "--number_of_worker_harness_threads=0"],
        "--number_of_worker_harness_threads=0",
        "1 or more",
    ),
    "a secret in sight": (["--s3_secret_access_key=X7"], "--s3_secret_access_key", "docs/object-stores.md"),
    "a short lease": (
        ["--crawl=gs://bucket/crawl", "--lease_seconds=60"],
        "--lease_seconds=60",
        "--fetch_timeout_seconds=120",
    ),
    "a bad Beam value": (["--direct_num_workers=two"], "--direct_num_workers", "two"),
    "a misspelt Beam flag": (["--paralelism=2"], "--paralelism", "--parallelism"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_work_is_refused_in_one_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments, flag, remedy = REFUSED[name]
    with pytest.raises(UsageError) as refusal:
        options_of(*arguments)
    text = str(refusal.value)
    assert flag in text and remedy in text and "\n" not in text, text
    assert "X7" not in text


def test_a_missing_prism_names_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PRISM_BIN", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UsageError, match=r"--prism_location is missing.*go install"):
        options_of("--runner=PrismRunner")


def test_the_lease_that_a_refusal_asks_for_is_accepted() -> None:
    for timeout in (3, 20, 45, 120, 600):
        flags = ("--crawl=s3://bucket/crawl", f"--fetch_timeout_seconds={timeout}")
        with pytest.raises(UsageError) as refusal:
            options_of(*flags, f"--lease_seconds={timeout}")
        advice = re.search(r"give (--lease_seconds=\d+)", str(refusal.value))
        assert advice
        options_of(*flags, advice[1])
    options_of("--lease_seconds=1")


def test_the_default_engine_names_its_runner_and_pickles_no_main_session() -> None:
    options = options_of()
    assert options["runner"] == "FnApiRunner"
    assert options["save_main_session"] is False
    assert options["sdk_harness_log_level_overrides"]["transforms"] == "INFO"
    assert options["default_sdk_harness_log_level"] == "WARN"


def test_workers_of_this_machine_are_processes() -> None:
    assert options_of("--direct_num_workers=2")["direct_running_mode"] == "multi_processing"
    assert slots_of("--direct_num_workers=2") == 2
    assert slots_of() == 1


def test_flink_gets_what_a_round_needs_there() -> None:
    options = options_of(*FLINK)
    assert options["experiments"] == ["pre_optimize=all"]
    assert int(options["environment_cache_millis"]) == 60000
    assert int(options["sdk_worker_parallelism"]) == 2
    assert (options["environment_type"], options["environment_config"]) == ("EXTERNAL", "localhost:50000")
    assert slots_of(*FLINK) == 2


def test_dataflow_gets_a_fixed_number_of_private_workers_with_a_shard_a_core() -> None:
    options = options_of(*DATAFLOW, "--shards=10")
    assert (options["num_workers"], options["autoscaling_algorithm"]) == (3, "NONE")
    assert options["number_of_worker_harness_threads"] == 1
    assert "use_multiple_sdk_containers" in options["experiments"]
    assert options["use_public_ips"] is False
    assert slots_of(*DATAFLOW, "--num_workers=3") == 12
    assert slots_of(*DATAFLOW, "--num_workers=3", "--worker_machine_type=n1-highmem-2") == 6
    assert slots_of(*DATAFLOW, "--machine_type=e2-standard-8", "--number_of_worker_harness_threads=2") == 16
    assert options_of(*DATAFLOW, "--use_public_ips")["use_public_ips"] is True
    assert (
        options_of(*DATAFLOW, "--crawl=s3://bucket/crawl", "--sdk_container_image=image")["num_workers"] == 1
    )


def test_page_processes_follow_the_worker_processes_of_a_machine() -> None:
    assert engines.page_processes(parse_round(["--crawl=/c"]).job) is None
    assert engines.page_processes(parse_round([*DATAFLOW]).job) == 1


def test_what_the_command_line_says_wins_over_a_preset() -> None:
    options = options_of(*FLINK, "--environment_cache_millis=0", "--environment_type=LOOPBACK")
    assert (int(options["environment_cache_millis"]), options["environment_type"]) == (0, "LOOPBACK")
    assert options["environment_config"] is None


def test_an_embedded_flink_runs_its_workers_here() -> None:
    options = options_of("--runner=FlinkRunner", "--shards=3")
    assert (options["flink_master"], options["environment_type"]) == ("[local]", "LOOPBACK")
    assert options["parallelism"] == 3


def test_a_folder_that_is_mounted_everywhere_is_accepted() -> None:
    assert options_of(*FAR, "--shared_filesystem")["environment_type"] == "EXTERNAL"
    assert options_of(*FAR, "--crawl=s3://bucket/crawl")["environment_type"] == "EXTERNAL"


def test_more_shards_than_slots_are_noted(capsys: pytest.CaptureFixture[str]) -> None:
    options_of("--shards=4")
    assert re.fullmatch(r"--shards=4 on 1 worker slot: .*\n", capsys.readouterr().err)


def test_a_job_server_jar_brings_no_flink_version() -> None:
    job = parse_round(["--crawl=/c", *FLINK, f"--flink_job_server_jar={__file__}"]).job
    given = engines.ENGINES["FlinkRunner"].preset(job)
    assert not [argument for argument in given if "flink_version" in argument]


def test_the_dump_is_the_whole_of_the_options_and_touches_nothing(tmp_path: Path) -> None:
    line = [
        sys.executable,
        "-m",
        "pipelines.round",
        f"--crawl={tmp_path / 'none'}",
        "--runner_preset_dump",
        *FLINK,
    ]
    result = subprocess.run(line, capture_output=True, text=True, check=False, timeout=110, cwd=ROOT)
    assert (result.returncode, result.stderr) == (0, "")
    options = json.loads(result.stdout)
    assert options["runner"] == "FlinkRunner" and options["parallelism"] == 2
    assert len(options) > 100
    assert list(tmp_path.iterdir()) == []


def test_no_engine_is_named_outside_this_layer() -> None:
    words = re.compile(
        r"FnApi|Flink|Prism|Dataflow|PortableRunner|DirectRunner|job_endpoint|num_workers", re.IGNORECASE
    )
    for folder in ("schemas", "crawler", "connectors", "transforms", "pipelines"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            assert not words.search(path.read_text(encoding="utf-8")), path
