"""`make bench`: run every benchmark of this folder, or those named, and print their figures.

Each `bench_*.py` has `run()`, which returns figures by name, units in the names, or groups of them. Ratios are taken
side by side in one run; single figures move with whatever else the machine does.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

PREFIX = "bench_"


def main(names: list[str]) -> None:
    """Run the benchmarks whose names are given, or all."""
    found = sorted(path.stem.removeprefix(PREFIX) for path in Path(__file__).parent.glob(f"{PREFIX}*.py"))
    unknown = sorted(set(names) - set(found))
    if unknown:
        sys.exit(f"no benchmark named {', '.join(unknown)}; there are {', '.join(found)}")
    for name in names or found:
        started = time.monotonic()
        figures = importlib.import_module(f"tests.benchmarks.{PREFIX}{name}").run()
        print(f"{name} ({time.monotonic() - started:.0f} s): python -m tests.benchmarks {name}")
        print("\n".join(lines_of(figures)), flush=True)


def lines_of(figures: Mapping[str, Any], group: str = "") -> Iterator[str]:
    """Yield a line for each figure; those of a group have its name before theirs."""
    for label, figure in figures.items():
        name = f"{group}{label}"
        if isinstance(figure, Mapping):
            yield from lines_of(figure, f"{name} ")
        elif isinstance(figure, float):
            yield f"  {name:<58}{figure:>14,.3f}"
        else:
            yield f"  {name:<58}{figure!s:>14}"


if __name__ == "__main__":
    main(sys.argv[1:])
