"""A round from the command's side: lock the crawl, resume or plan, run the job, publish, say what came out."""

from __future__ import annotations

import logging
import secrets
import shlex
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import apache_beam as beam

from connectors import layout
from connectors.clock import Clock, SystemClock
from connectors.faults import CrawlFolderError, Locked, LostRace
from connectors.files import StorageError, disk_full, is_disk_full
from connectors.lease import Lease, LeaseKeeper, crawl_lease
from connectors.lease_dead import DeadShards
from connectors.rounds import CrawlFolder
from connectors.stop import StopMarker, StopSignal
from connectors.sweep import sweep
from pipelines import summary
from pipelines.checks import check_contact
from pipelines.progress import show_progress
from runners import engines
from runners.job import CANCEL_AFTER_SECONDS, Job
from runners.logs import start_logging
from runners.options import EXIT_DONE, EXIT_FAILED, format_instant
from runners.quiet import unlogged
from runners.round_options import RoundCommand
from schemas.crawl import CrawlIdentity
from schemas.flags import ENGINE_FLAGS, CrawlFlags
from schemas.manifest import Manifest
from schemas.round import RoundPlan, RoundSpec
from transforms.remaining import remaining_seconds
from transforms.view import RoundStopped, RoundView, read_plan

Build = Callable[[beam.Pipeline, RoundSpec, RoundPlan | None], None]


class RoundFailed(Exception):
    """The round in hand is not committed; the text says why."""


def run_rounds(command: RoundCommand, build: Build) -> int:
    """Run the rounds of one command under the crawl's lock; return the exit code of the contract."""
    start_logging()
    options = engines.pipeline_options(command.job)
    if command.runner_preset_dump:
        print(engines.dump(options))
        return EXIT_DONE
    try:
        return _run_locked(command, options, build)
    except (CrawlFolderError, Locked, LostRace, RoundFailed, StorageError) as error:
        sys.stderr.write(f"round: {' '.join(str(error).split())}\n")
        return getattr(error, "exit_code", EXIT_FAILED)


def _run_locked(
    command: RoundCommand, options: beam.options.pipeline_options.PipelineOptions, build: Build
) -> int:
    folder = CrawlFolder.at(command.crawl)
    identity = folder.identity()
    check_contact(folder, command.flags)
    clock = SystemClock()
    lease = crawl_lease(folder, clock, command.flags.lease_seconds)
    try:
        with StopSignal() as stop:
            dead = DeadShards(folder, clock)
            dead.note()
            if lease.acquire(stop=stop.event).after_crash:
                dead.free(command.flags.lease_seconds)
            driver = RoundDriver(folder, identity, command, options, build, stop)
            with LeaseKeeper(lease, driver.progress, clock) as keeper:
                driver.hold(lease, keeper, clock)
                return driver.run()
    finally:
        lease.release()


class RoundDriver:
    """Runs one round after another on a locked crawl."""

    def __init__(
        self,
        folder: CrawlFolder,
        identity: CrawlIdentity,
        command: RoundCommand,
        options: beam.options.pipeline_options.PipelineOptions,
        build: Build,
        stop: StopSignal,
    ) -> None:
        self.folder, self.identity, self.command = folder, identity, command
        self.options, self.build, self.stop = options, build, stop
        self.round = 0
        self._lost = threading.Event()
        self._holds: Callable[[], bool] = lambda: True

    def hold(self, lease: Lease, keeper: LeaseKeeper, clock: Clock) -> None:
        """Go by this lease on the crawl, kept by ``keeper``: once it is lost, nothing more is done."""
        self._lost = keeper.lost
        self._holds = lambda: lease.holds(clock.monotonic(), 0.0)

    def progress(self) -> dict[str, int]:
        """Return what the crawl's lease says to others: the round in hand, 0 between rounds."""
        return {"round": self.round}

    def run(self) -> int:
        """Run up to ``--rounds`` rounds; stop early when nothing is due."""
        self._finish_publication()
        for number in range(self.command.rounds):
            self._stay()
            run_id = self._run_id(number)
            if self.command.run_id is not None and self.folder.round_of_run(run_id) is not None:
                print(f"already done: {run_id}")
            elif not self._run_one(run_id):
                break
        return EXIT_DONE

    def _stay(self) -> None:
        """Raise when no further round may begin here."""
        if self._lost.is_set():
            raise Locked(f"{self.folder.root}: another run has taken this crawl over")
        if self.stop.requested:
            raise RoundFailed(f"stopped between two rounds; to go on: {_command_line()}")

    def _run_id(self, number: int) -> str:
        given = self.command.run_id
        if given is None:
            return f"{format_instant(time.time())}-{secrets.token_hex(4)}"
        return given if number == 0 else f"{given}+{number}"

    def _finish_publication(self) -> None:
        newest = self.folder.newest_manifest()
        if newest is not None:
            self._publish(newest)

    def _publish(self, manifest: Manifest) -> None:
        self.folder.remember_run(manifest)
        self.folder.publish_staged(manifest)

    def _run_one(self, run_id: str) -> bool:
        """Run one round and return whether one was committed; False when nothing is due."""
        unfinished = self.folder.unfinished_round()
        plan = read_plan(self.folder, unfinished) if unfinished is not None else None
        spec = self._resumed(plan) if plan is not None else self._fresh(run_id)
        view = RoundView(spec)
        if plan is None and not view.has_work():
            self._say_next_due(view)
            return False
        started = time.monotonic()
        self._run_job(spec, plan)
        manifest = self._committed(spec)
        if manifest is None:
            self._say_next_due(view)
            return False
        self._publish(manifest)
        sweep(self.folder, holds=self._holds)
        print(summary.text(self.folder, manifest, time.monotonic() - started), flush=True)
        return True

    def _fresh(self, run_id: str) -> RoundSpec:
        now = time.time()
        flags = self.command.flags
        if flags.shards is None:
            flags = replace(flags, shards=engines.worker_slots(self.command.job, self.options))
        if flags.page_processes is None:
            flags = replace(flags, page_processes=engines.page_processes(self.command.job))
        parent = self.folder.newest_round()
        return RoundSpec(
            crawl=self.command.crawl,
            name=self.identity.name,
            salt=self.identity.salt,
            partitions=self.identity.partitions,
            scope=self.identity.scope,
            round=parent + 1,
            parent=parent or None,
            run_id=run_id,
            as_of=now if self.command.as_of is None else self.command.as_of,
            started_at=now,
            deadline_at=now + flags.round_minutes * 60,
            flags=flags,
            attempt=secrets.token_hex(4),
        )

    def _resumed(self, plan: RoundPlan) -> RoundSpec:
        """Return the spec of the unfinished round: its plan's flags, and the time that it has not used."""
        planned = CrawlFlags.from_json(plan.flags)
        ignored = [
            name
            for name, value in sorted(self.command.given.items())
            if name not in ENGINE_FLAGS and value != getattr(planned, name)
        ]
        if ignored:
            names = ", ".join(f"--{name}" for name in ignored)
            sys.stderr.write(f"round {plan.round} is resumed with the flags of its plan; ignored: {names}\n")
        engine = {name: value for name, value in self.command.given.items() if name in ENGINE_FLAGS}
        now = time.time()
        spec = replace(
            self._fresh(plan.run_id), as_of=plan.as_of, flags=replace(planned, **engine), started_at=now
        )
        return replace(spec, deadline_at=now + remaining_seconds(self.folder, plan))

    def _run_job(self, spec: RoundSpec, plan: RoundPlan | None) -> None:
        pipeline = beam.Pipeline(options=self.options)
        self.build(pipeline, spec, plan)
        self.round = spec.round
        try:
            job = Job(pipeline)
            with self._relaying_stop(spec, job), show_progress(self.folder, spec), unlogged(RoundStopped):
                job.run()
        except (Locked, LostRace):
            raise
        except Exception as error:
            if self._lost.is_set() or not self._holds():
                raise Locked(
                    f"round {spec.round} goes on elsewhere: another run has taken it over"
                ) from error
            if self.stop.requested:
                raise RoundFailed(self._resume_line(spec, "was stopped")) from error
            if not isinstance(error, CrawlFolderError | StorageError):
                logging.getLogger(__name__).exception("the job of round %d failed", spec.round)
            if self.folder.newest_round() >= spec.round:
                return  # Committed all the same: by this job before its engine failed, or by another run.
            why = str(disk_full(self.folder.root)) if is_disk_full(error) else _last_line(error)
            raise RoundFailed(self._resume_line(spec, f"failed: {why}")) from error

    @contextmanager
    def _relaying_stop(self, spec: RoundSpec, job: Job) -> Iterator[None]:
        """Tell the workers, wherever they run, when a signal comes or the crawl's lease is lost.

        A job whose workers do not obey, for instance because the engine never got any, is cancelled.
        """
        done = threading.Event()
        marker = StopMarker(self.folder, spec.round, spec.attempt)

        def relay() -> None:
            while not done.wait(0.2):
                lost = self._lost.is_set()
                if self.stop.requested or lost:
                    marker.request("lease lost" if lost else self.stop.signal_name or "signal", time.time())
                    if not done.wait(CANCEL_AFTER_SECONDS):
                        job.cancel()
                    return

        thread = threading.Thread(target=relay, name="stop-relay", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _committed(self, spec: RoundSpec) -> Manifest | None:
        if self.folder.newest_round() >= spec.round:
            manifest = self.folder.read_manifest(spec.round)
            if manifest.run_id != spec.run_id:
                raise LostRace(f"round {spec.round} was committed by another run ({manifest.run_id})")
            return manifest
        if self.folder.storage.exists(layout.nothing_path(spec.round, spec.attempt)):
            return None
        raise RoundFailed(self._resume_line(spec, "ended without a manifest"))

    def _resume_line(self, spec: RoundSpec, what: str) -> str:
        return f"round {spec.round} {what} and is not committed; to resume: {_command_line()}"

    @staticmethod
    def _say_next_due(view: RoundView) -> None:
        at = view.next_due_at()
        print(
            f"next due: {format_instant(at)}" if at is not None else "next due: never (the frontier is empty)"
        )


def _command_line() -> str:
    return f"python -m pipelines.round {shlex.join(sys.argv[1:])}"


def _last_line(error: BaseException) -> str:
    """Return what an engine's error says at its end, where a worker's own message stands; ours say it all."""
    if isinstance(error, CrawlFolderError | StorageError):
        return " ".join(str(error).split())
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1].strip()[:300] if lines else type(error).__name__
