"""Every flag that the documents name is one that a command, or Beam, knows; every round in them is accepted."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import re
import shlex
from pathlib import Path

import pytest

from runners import engines
from runners.round_options import parse_round

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").rglob("*.md")])
COMMANDS = sorted(
    path.stem
    for path in (ROOT / "pipelines").glob("*.py")
    if "def main(argv" in path.read_text(encoding="utf-8")
)
FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]*")


def flags_of(module: str) -> set[str]:
    """Return the flags that a command's help names."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        importlib.import_module(module).main(["--help"])
    return set(FLAG.findall(out.getvalue()))


@pytest.fixture(scope="module")
def known() -> set[str]:
    beam = {option for action in engines.beam_parser()._actions for option in action.option_strings}
    return beam.union(*map(flags_of, ["runners.worker_pool", *(f"pipelines.{name}" for name in COMMANDS)]))


def rounds_in(text: str) -> list[list[str]]:
    """Return the arguments of each round command in a document's code blocks."""
    blocks = re.findall(r"```\w*\n(.*?)```", text, re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    marked = [line.partition("-m pipelines.round ")[2] for line in lines]
    return [shlex.split(line, comments=True) for line in marked if line]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_names_no_flag_that_nobody_knows(document: Path, known: set[str]) -> None:
    named = {flag for flag in FLAG.findall(document.read_text(encoding="utf-8")) if "-" not in flag[2:]}
    assert named - known == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_round_in_a_document_is_one_that_the_command_takes(document: Path) -> None:
    for arguments in rounds_in(document.read_text(encoding="utf-8")):
        if not any(mark in " ".join(arguments) for mark in ("...", "PATH", "[")):
            engines.pipeline_options(parse_round(arguments).job)


def test_the_dag_settings_example_names_known_flags(known: set[str]) -> None:
    (settings,) = json.loads((ROOT / "runners/airflow/dags.example.json").read_text())
    given = [*settings["flags"], *(flag for more in settings["engines"].values() for flag in more)]
    assert {flag.partition("=")[0] for flag in given} - known == set()
