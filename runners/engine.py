"""What every engine module offers, and the checks that more than one engine needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, Protocol

from connectors.lease_object import LARGEST_MARGIN_SECONDS, MARGIN_SHARE, RENEWALS_A_TERM
from runners.options import UsageError
from schemas.flags import CrawlFlags

SECRET_OPTIONS = ("s3_access_key_id", "s3_secret_access_key", "s3_session_token", "azure_connection_string")

Values = Mapping[str, Any]
"""Every Beam option by its name, after defaults and what the command line gave."""


@dataclass(frozen=True)
class JobRequest:
    """What a command asks of an engine.

    ``beam_arguments`` are the options that pass through to Beam, as given. ``shared_filesystem`` says that every
    worker sees the crawl folder under the same path.
    """

    runner: str
    crawl: str
    flags: CrawlFlags
    beam_arguments: tuple[str, ...] = ()
    shared_filesystem: bool = False

    @property
    def crawl_is_local(self) -> bool:
        """Whether the crawl folder is a path of this machine, not an object store's."""
        return "://" not in self.crawl

    def names(self, option: str) -> bool:
        """Return whether the command line gave this Beam option, written without dashes."""
        return any(argument.split("=", 1)[0] == f"--{option}" for argument in self.beam_arguments)


class Engine(Protocol):
    """One execution engine. Its module is the only place that knows its name and its habits."""

    name: str
    """The value of ``--runner``."""

    page_processes: int | None
    """Page processes of one worker process, None for one a core."""

    def preset(self, job: JobRequest) -> list[str]:
        """Return the Beam arguments that this engine needs; the command line's own come after and win."""

    def check(self, job: JobRequest, values: Values) -> None:
        """Raise UsageError, in one line that names flag and remedy, for a job that cannot work here."""

    def slots(self, job: JobRequest, values: Values) -> int:
        """Return how many shards this engine works on at once: the default number of shards."""


def check_secrets(job: JobRequest) -> None:
    """Refuse a secret on the command line: shells, process lists, logs and job servers would all keep it."""
    for option in SECRET_OPTIONS:
        if job.names(option):
            raise UsageError(
                f"--{option} is not taken: a command line is seen by others; the object store's client reads its "
                "credentials from its own environment variables and files (docs/object-stores.md)"
            )


def check_lease(job: JobRequest) -> None:
    """Refuse a lease that could not cover one download: on an object store the shard would ask nothing.

    The lease is renewed RENEWALS_A_TERM times a term, and a request starts only if it must end before the term.
    """
    flags = job.flags
    if job.crawl_is_local:
        return
    term = flags.lease_seconds
    margin = min(LARGEST_MARGIN_SECONDS, MARGIN_SHARE * term)
    if term - margin - term / RENEWALS_A_TERM < flags.fetch_timeout_seconds:
        share = 1 - 1 / RENEWALS_A_TERM
        enough = ceil(
            max(
                (flags.fetch_timeout_seconds + LARGEST_MARGIN_SECONDS) / share,
                flags.fetch_timeout_seconds / (share - MARGIN_SHARE) if term < 50 else 0,
            )
        )
        raise UsageError(
            f"--lease_seconds={term:g} is too short for --fetch_timeout_seconds={flags.fetch_timeout_seconds:g} on an "
            f"object store: give --lease_seconds={enough} or more, or a shorter --fetch_timeout_seconds"
        )


def check_shards(job: JobRequest, workers: int, flag: str) -> None:
    """Refuse a number of shards that leaves workers idle that the command line asked for by ``flag``."""
    shards = job.flags.shards
    if shards is not None and job.names(flag) and shards < workers:
        raise UsageError(
            f"--shards={shards} leaves {workers - shards} of the workers of --{flag}={workers} without a shard: "
            f"give --shards={workers} or more, or leave it out"
        )


def check_folder(job: JobRequest, where: str) -> None:
    """Refuse a crawl folder that workers elsewhere cannot see, unless it is said to be mounted there."""
    if job.crawl_is_local and not job.shared_filesystem:
        raise UsageError(
            f"--crawl={job.crawl} lies on this machine and {where}: put the crawl on gs:// or s3://, or add "
            "--shared_filesystem if that path is mounted on every worker"
        )


def whole(values: Values, name: str, default: int) -> int:
    """Return a Beam option as a whole number; Beam keeps some of them as text.

    Raises UsageError for text that is none.
    """
    value = values.get(name)
    if value is None:
        return default
    try:
        return int(value)
    except ValueError:
        raise UsageError(f"--{name}={value} is not a whole number") from None
