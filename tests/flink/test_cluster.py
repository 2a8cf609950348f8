"""The cluster comes up as its reference configuration says, and survives its TaskManager."""

from __future__ import annotations

import pytest

from tests.flink.cluster import LOOPBACK, SLOTS, VERSION, Cluster, listens_on

pytestmark = pytest.mark.timeout(900)


def test_two_processes_offer_the_slots(cluster: Cluster) -> None:
    overview = cluster.ask("/overview")
    assert (overview["taskmanagers"], overview["slots-total"]) == (1, SLOTS)
    assert overview["flink-version"] == VERSION
    assert cluster.process("standalonesession") != cluster.process("taskexecutor")


def test_it_listens_on_loopback_only(cluster: Cluster) -> None:
    for kind in ("standalonesession", "taskexecutor"):
        addresses = listens_on(cluster.process(kind))
        assert addresses and addresses <= set(LOOPBACK), (kind, addresses)


def test_the_configuration_is_in_force(cluster: Cluster) -> None:
    values = {entry["key"]: entry["value"] for entry in cluster.ask("/jobmanager/config")}
    assert values["taskmanager.network.sort-shuffle.min-parallelism"] == "128"
    assert values["classloader.resolve-order"] == "parent-first"
    assert values["taskmanager.memory.task.off-heap.size"] == "256m"


def test_another_task_manager_takes_the_place_of_a_killed_one(cluster: Cluster) -> None:
    killed = cluster.process("taskexecutor")
    cluster.kill_task_manager()
    assert cluster.process("taskexecutor") != killed
    assert listens_on(cluster.process("taskexecutor")) <= set(LOOPBACK)
