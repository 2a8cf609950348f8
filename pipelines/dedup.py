"""`python -m pipelines.dedup`: the content gate alone, on a folder of WARC files."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Sequence

import apache_beam as beam

from connectors.files import Storage, StorageError, open_storage
from connectors.warc_files import StoredFile, find_files
from runners import engines
from runners.dedup_options import DedupCommand, parse_dedup
from runners.logs import start_logging
from runners.options import EXIT_DONE, EXIT_FAILED, UsageError, run_command
from transforms.dedup import CompareSketches
from transforms.gate.view import GateSpec
from transforms.unique import SUMMARY, WriteUnique
from transforms.warc_pages import ParseWarcs, WarcRef


def build(pipeline: beam.Pipeline, command: DedupCommand, files: Sequence[StoredFile]) -> None:
    """Wire the job: pages out of WARC files, through the gate, into tables."""
    spec = GateSpec.of_texts(command.out, command.flags.near_dup_threshold)
    refs = [WarcRef(number, file.root, file.path) for number, file in enumerate(files)]
    warcs = pipeline | "Files" >> beam.Create(refs) | "ParseWarcs" >> ParseWarcs(spec, command.flags)
    gate = warcs.parsed | "CompareSketches" >> CompareSketches(spec)
    tallies = (warcs.tallies, gate.tallies) | "Tallies" >> beam.Flatten()
    (warcs.parsed, gate.verdicts, tallies) | "WriteUnique" >> WriteUnique(spec)  # type: ignore[operator]


def main(argv: Sequence[str]) -> int:
    """Run the job and print what came out; exit code as every command."""
    command = parse_dedup(argv)
    start_logging()
    options = engines.pipeline_options(command.job)
    try:
        files = [file for pattern in command.warc for file in find_files(pattern)]
        storage = open_storage(command.out)
        taken = storage.list("tables/") or storage.exists(SUMMARY)
    except StorageError as error:
        raise UsageError(str(error)) from error
    if not files:
        raise UsageError(f"--warc={' '.join(command.warc)} matches no file")
    if taken:
        raise UsageError(f"--out={command.out} holds results already: give a new folder")
    pipeline = beam.Pipeline(options=options)
    build(pipeline, command, list(dict.fromkeys(files)))
    try:
        pipeline.run().wait_until_finish()
    except Exception as error:  # Whatever the engine raises, the command says so and ends with exit 1.
        logging.getLogger(__name__).exception("the job failed")
        sys.stderr.write(f"dedup: the job failed: {error}\n")
        return EXIT_FAILED
    return _report(storage)


def _report(storage: Storage) -> int:
    """Say what came out, and remove what the steps handed to each other."""
    for info in storage.list("work/"):
        storage.delete(info.path)
    if not storage.exists(SUMMARY):
        sys.stderr.write("dedup: the job ended without its summary\n")
        return EXIT_FAILED
    counts: dict[str, int] = json.loads(storage.read_bytes(SUMMARY))
    for name in counts:
        if name.startswith("damaged/"):
            sys.stderr.write(f"{name.replace('/', ': ', 1)}\n")
    left_out = {
        name.partition("/")[2]: count for name, count in counts.items() if name.startswith("left_out/")
    }
    print(f"files: {counts.get('files', 0)}, pages: {counts.get('pages', 0)}")
    print("left out: " + (", ".join(f"{name} {count}" for name, count in left_out.items()) or "nothing"))
    print(
        f"unique: {counts.get('rows/pages', 0)}, exact: {counts.get('gate/exact', 0)}, "
        f"near: {counts.get('gate/near', 0)}"
    )
    print(f"tables: {storage.root}/tables/*/round=000001/")
    return EXIT_DONE


if __name__ == "__main__":
    run_command(main, "dedup")
