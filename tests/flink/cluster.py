"""A real Flink cluster on loopback: one JobManager and one TaskManager, started with the scripts of deploy/flink."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from connectors.clock import SystemClock

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "deploy" / "flink"
VERSION = os.environ.get("FLINK_VERSION") or "2.2.1"
SLOTS = 2
LISTEN = "0A"
LOOPBACK = ("0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F")


def flink_minor() -> str:
    """Return the version as Beam names it, such as 2.2."""
    return ".".join(VERSION.split(".")[:2])


def install() -> Path:
    """Return FLINK_HOME of the asked-for version, installed under .cache if need be."""
    folder = ROOT / ".cache" / f"flink-{VERSION}"
    result = subprocess.run(
        [SCRIPTS / "install.sh", VERSION, folder],
        env={**os.environ, "PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return Path(result.stdout.strip())


@dataclass(frozen=True)
class Cluster:
    """A running cluster: its folder, the ports of its REST interface and its RPC, the scripts' environment."""

    folder: Path
    port: int
    environment: dict[str, str]

    @property
    def master(self) -> str:
        """The value of --flink_master."""
        return f"localhost:{self.port}"

    def ask(self, path: str) -> Any:
        """Return what the REST interface says."""
        with urllib.request.urlopen(f"http://{self.master}{path}", timeout=20) as reply:
            return json.load(reply)

    def slots(self) -> int:
        """Return the task slots that are there; 0 while the JobManager does not answer."""
        with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError):
            return int(self.ask("/overview")["slots-total"])
        return 0

    def script(self, command: str) -> None:
        """Run cluster.sh."""
        subprocess.run(
            [SCRIPTS / "cluster.sh", command, self.folder],
            env=self.environment,
            stdout=subprocess.DEVNULL,
            check=True,
        )

    def process(self, kind: str) -> int:
        """Return the process of the newest `standalonesession` (JobManager) or `taskexecutor` (TaskManager)."""
        [path] = self.folder.glob(f"pid/*{kind}.pid")
        return int(path.read_text().split()[-1])

    def managers(self) -> set[str]:
        """Return the names of the TaskManagers that the JobManager counts on."""
        return {manager["id"] for manager in self.ask("/taskmanagers")["taskmanagers"]}

    def kill_task_manager(self) -> None:
        """Kill the TaskManager as a machine that fails would, and start another one."""
        lost = self.managers()
        os.kill(self.process("taskexecutor"), signal.SIGKILL)
        self.script("start-taskmanager")
        wait_until(lambda: not lost & self.managers() and self.slots() == SLOTS, "the new TaskManager alone")

    def memory(self) -> dict[str, float]:
        """Return what the TaskManager holds: metaspace and direct memory in bytes, classes loaded."""
        names = {
            "metaspace": "Status.JVM.Memory.Metaspace.Used",
            "direct": "Status.JVM.Memory.Direct.MemoryUsed",
            "classes": "Status.JVM.ClassLoader.ClassesLoaded",
        }
        found: dict[str, float] = {}

        def are_there() -> bool:
            # The JobManager asks its TaskManagers for metrics only now and then, first when it is asked itself.
            [manager] = self.managers()
            path = f"/taskmanagers/{manager}/metrics?get={','.join(names.values())}"
            found.update({metric["id"]: float(metric["value"]) for metric in self.ask(path)})
            return set(names.values()) <= set(found)

        wait_until(are_there, "the TaskManager's metrics")
        return {name: found[metric] for name, metric in names.items()}


def wait_until(holds: Callable[[], bool], what: str, seconds: float = 300) -> None:
    """Return as soon as it holds; fail loudly when it never does."""
    clock = SystemClock()
    end = clock.monotonic() + seconds
    while not holds():
        if clock.monotonic() > end:
            raise AssertionError(f"waited {seconds} s in vain for {what}")
        clock.wait(0.5)


@contextlib.contextmanager
def running_cluster(home: Path, folder: Path, jar: str | None) -> Iterator[Cluster]:
    """Start a cluster with two slots and wait for them; stop it with the block."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("FLINK_")},
        "FLINK_HOME": str(home),
        "FLINK_PORT": str(free_port()),
        "FLINK_RPC_PORT": str(free_port()),
        "FLINK_SLOTS": str(SLOTS),
        "PYTHON": sys.executable,
        **({"FLINK_JOB_SERVER_JAR": jar} if jar else {}),
    }
    cluster = Cluster(folder, int(environment["FLINK_PORT"]), environment)
    try:
        cluster.script("start")
        wait_until(lambda: cluster.slots() == SLOTS, f"{SLOTS} task slots; see {folder}/log")
        yield cluster
    finally:
        cluster.script("stop")


def free_port() -> int:
    """Return a TCP port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens_on(pid: int) -> set[str]:
    """Return the addresses, in the kernel's notation, that a process listens on with TCP."""
    sockets = set()
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            target = str(path.readlink())
            if target.startswith("socket:["):
                sockets.add(target[8:-1])
    addresses = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            columns = line.split()
            if columns[3] == LISTEN and columns[9] in sockets:
                addresses.add(columns[1].split(":")[0])
    return addresses
