"""From `--runner` and the options that pass through to Beam to the options of one job."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

from apache_beam.options.pipeline_options import PipelineOptions, _BeamArgumentParser

from runners.dataflow import Dataflow
from runners.engine import Engine, JobRequest, check_lease, check_secrets
from runners.flink import Flink
from runners.local import Local
from runners.logs import WORKER_LOGGING
from runners.options import UsageError, unknown_flag
from runners.portable import Portable
from runners.prism import Prism

ENGINES: Mapping[str, Engine] = {
    engine.name: engine for engine in (Local(), Flink(), Prism(), Dataflow(), Portable())
}


class _Parser(_BeamArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the whole usage text."""
        raise UsageError(message)


def beam_parser() -> _Parser:
    """Return a parser of every option that some Beam options class defines."""
    parser = _Parser(allow_abbrev=False)
    for options in sorted(
        _subclasses(PipelineOptions), key=lambda kind: f"{kind.__module__}.{kind.__qualname__}"
    ):
        if "_add_argparse_args" in options.__dict__:
            options._add_argparse_args(parser)
    return parser


def _subclasses(kind: type) -> set[type]:
    children = set(kind.__subclasses__())
    return children.union(*(_subclasses(child) for child in children))


def check_beam_arguments(arguments: Sequence[str], own_names: Sequence[str]) -> None:
    """Raise UsageError for the first argument that neither the crawl nor Beam knows, or that has a bad value."""
    if not arguments:
        return
    parser = beam_parser()
    names = {option for action in parser._actions for option in action.option_strings}
    for argument in arguments:
        if argument.split("=", 1)[0] not in names:
            raise UsageError(unknown_flag(argument, [*own_names, *names]))
    parser.parse_known_args(list(arguments))


def pipeline_options(job: JobRequest) -> PipelineOptions:
    """Return the options of one job: what its engine needs, then what the command line gave.

    The runner is always named (Beam's default tries to fetch another one), and the main session is never
    pickled. Raises UsageError for a job that cannot work on its engine, before anything starts.
    """
    engine = _engine(job)
    check_secrets(job)
    check_lease(job)
    fixed = [f"--runner={engine.name}", "--no_save_main_session", *WORKER_LOGGING]
    options = PipelineOptions([*fixed, *engine.preset(job), *job.beam_arguments])
    engine.check(job, options.get_all_options())
    _note_shards_in_turn(job, worker_slots(job, options))
    return options


def worker_slots(job: JobRequest, options: PipelineOptions) -> int:
    """Return how many shards the engine works on at once: the default number of shards."""
    return _engine(job).slots(job, options.get_all_options())


def page_processes(job: JobRequest) -> int | None:
    """Return the page processes that one worker process of the engine should have, None for one a core."""
    return _engine(job).page_processes


def dump(options: PipelineOptions) -> str:
    """Return every Beam option of the job as JSON, names sorted."""
    return json.dumps(options.get_all_options(), indent=2, sort_keys=True, default=str)


def _engine(job: JobRequest) -> Engine:
    if job.runner not in ENGINES:
        raise UsageError(f"--runner={job.runner} is not one of {', '.join(ENGINES)}")
    return ENGINES[job.runner]


def _note_shards_in_turn(job: JobRequest, slots: int) -> None:
    shards = job.flags.shards
    if shards is not None and shards > slots:
        sys.stderr.write(
            f"--shards={shards} on {slots} worker slot{'s' if slots > 1 else ''}: later shards begin when "
            "earlier ones end, and share the round's deadline\n"
        )
