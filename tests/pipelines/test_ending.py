"""Ctrl-C at any moment of a command's imports: one line, exit 1."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INTERRUPTED_IMPORT = """
import builtins, runpy, signal, sys
# A program that was started in the background ignores the signal.
signal.signal(signal.SIGINT, signal.default_int_handler)
usual = builtins.__import__
def imported(name, *more, **named):
    if name == {name!r}:
        signal.raise_signal(signal.SIGINT)
    return usual(name, *more, **named)
builtins.__import__ = imported
sys.argv = ["-m"]
import pipelines
sys.argv = ["round", "--crawl=/nowhere"]
runpy.run_module("pipelines.round", run_name="__main__")
"""


@pytest.mark.parametrize("name", ["apache_beam", "pyarrow.parquet", "transforms.update"])
def test_ctrl_c_during_the_imports_is_one_line(name: str) -> None:
    code = INTERRUPTED_IMPORT.format(name=name)
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "interrupted; what was written whole stays, the same command goes on from there\n"


def test_a_program_that_imports_a_command_keeps_its_hook() -> None:
    code = "import sys; usual = sys.excepthook; import pipelines; assert sys.excepthook is usual"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_ctrl_c_later_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from runners.options import run_command

    def interrupted(argv: object) -> int:
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as end:
        run_command(interrupted, "audit")
    assert end.value.code == 1
    assert capsys.readouterr().err.startswith("audit: interrupted")
