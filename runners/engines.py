"""Beam options for each engine, from a runner's name and the options that pass through to Beam."""

from __future__ import annotations

from collections.abc import Sequence

from apache_beam.options.pipeline_options import PipelineOptions, _BeamArgumentParser

from runners.options import UsageError, unknown_flag

LOCAL = "FnApiRunner"
RUNNERS = (LOCAL, "FlinkRunner", "PrismRunner", "DataflowRunner", "PortableRunner")


def beam_option_names() -> set[str]:
    """Return every `--name` that some Beam options class defines."""
    parser = _BeamArgumentParser(allow_abbrev=False)
    for options in _subclasses(PipelineOptions):
        if "_add_argparse_args" in options.__dict__:
            options._add_argparse_args(parser)
    return {option for action in parser._actions for option in action.option_strings}


def _subclasses(kind: type) -> set[type]:
    children = set(kind.__subclasses__())
    return children.union(*(_subclasses(child) for child in children))


def check_beam_arguments(arguments: Sequence[str], own_names: Sequence[str]) -> None:
    """Raise UsageError for the first argument that neither the crawl nor Beam knows."""
    if not arguments:
        return
    beam_names = beam_option_names()
    for argument in arguments:
        name = argument.split("=", 1)[0]
        if name not in beam_names:
            raise UsageError(unknown_flag(argument, [*own_names, *beam_names]))


def pipeline_options(runner: str, beam_arguments: Sequence[str]) -> PipelineOptions:
    """Return the options of one job. The runner is always named: Beam's default tries to fetch another one."""
    if runner not in RUNNERS:
        raise UsageError(f"--runner={runner} is not one of {', '.join(RUNNERS)}")
    return PipelineOptions([f"--runner={runner}", "--no_save_main_session", *beam_arguments])


def worker_slots(options: PipelineOptions, runner: str) -> int:
    """Return how many shards the engine works on at once: the default number of shards."""
    if runner == LOCAL:
        return int(options.get_all_options().get("direct_num_workers") or 1)
    values = options.get_all_options()
    return max(1, int(values.get("parallelism") or values.get("num_workers") or 1))
