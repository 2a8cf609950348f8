"""The wheel is all that a worker needs: a whole toy crawl runs from it, with no checkout around."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.fakes.toy_server import serve
from tests.fakes.toy_web import ToyWeb
from tests.packaging.conftest import LAYERS, ROOT, Installed

pytestmark = pytest.mark.timeout(1800)


def modules_of_the_tree() -> set[str]:
    packages = [path.parent for layer in LAYERS for path in (ROOT / layer).rglob("__init__.py")]
    return {str(path.relative_to(ROOT)) for package in packages for path in package.glob("*.py")}


def test_the_wheel_holds_the_packages_and_nothing_else(installed: Installed) -> None:
    names = {name for name in installed.names() if ".dist-info/" not in name}
    assert {name for name in names if name.endswith(".py")} == modules_of_the_tree()
    assert {Path(name).name for name in names if not name.endswith(".py")} == {"py.typed"}


def test_its_top_level_names_are_its_own(installed: Installed) -> None:
    code = (
        "import importlib.metadata as m, json; owners = m.packages_distributions()\n"
        f"print(json.dumps({{name: owners[name] for name in {LAYERS!r}}}))"
    )
    assert json.loads(installed.run("-c", code).stdout) == {name: ["roundcrawl"] for name in LAYERS}


def test_every_module_can_be_imported_without_an_extra(installed: Installed) -> None:
    names = sorted(name.removesuffix(".py").replace("/", ".") for name in modules_of_the_tree())
    modules = [name.removesuffix(".__init__") for name in names]
    result = installed.run("-c", f"import importlib\nfor name in {modules!r}: importlib.import_module(name)")
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("engine", ["--runner=FnApiRunner", "--runner=PortableRunner"])
def test_a_whole_toy_crawl_runs_from_it(installed: Installed, engine: str) -> None:
    web = ToyWeb(sites=3, pages=3, robots_delay_seconds=0.3)
    crawl = installed.folder / engine.partition("=")[2]
    with serve(web) as server:
        result = installed.run("-m", "pipelines.inject", f"--crawl={crawl}", "--salt=toy", *web.seeds())
        assert result.returncode == 0, result.stderr
        flags = [f"--connect_to=::127.0.0.1:{server.port}", "--min_delay_seconds=0.1", "--latency_factor=0"]
        result = installed.run(
            "-m", "pipelines.round", f"--crawl={crawl}", "--rounds=2", engine, *flags, timeout=600
        )
        assert result.returncode == 0, result.stderr
    manifest = json.loads((crawl / "rounds/000002/manifest.json").read_text())
    assert sum(manifest["outcomes"]["fetched"].values()) > 5
    result = installed.run("-m", "pipelines.audit", f"--crawl={crawl}")
    assert result.returncode == 0, result.stdout + result.stderr


def test_nothing_of_it_came_from_the_checkout(installed: Installed) -> None:
    code = "import pipelines, schemas, sys; print(pipelines.__file__, schemas.__file__, sys.path)"
    said = installed.run("-c", code).stdout
    assert str(ROOT) not in said and said.count("site-packages") >= 2


def test_the_setup_file_makes_the_same_package(checkout: Path, tmp_path: Path, installed: Installed) -> None:
    line = [sys.executable, "setup.py", "--quiet", "sdist", "--formats=gztar", f"--dist-dir={tmp_path}"]
    subprocess.run(line, cwd=checkout, check=True, capture_output=True)
    [sdist] = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert modules_of_the_tree() <= inside
    assert {"setup.py", "README.md", "pyproject.toml"} <= inside
    assert not [name for name in inside if name.startswith(("tests", "deploy", "docs"))]
