"""What is packaged: every package of the tree, under names that no dependency uses."""

from __future__ import annotations

import ast
import importlib.metadata
from pathlib import Path

ROOT = Path(__file__).parents[2]
LAYERS = ("schemas", "crawler", "connectors", "transforms", "pipelines", "runners")


def packaged() -> list[str]:
    tree = ast.parse((ROOT / "setup.py").read_text())
    [packages] = [
        keyword.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "packages"
    ]
    return list(ast.literal_eval(packages))


def test_every_package_is_packaged_and_nothing_else() -> None:
    folders = {path.parent for layer in LAYERS for path in (ROOT / layer).rglob("__init__.py")}
    assert sorted(packaged()) == sorted(".".join(folder.relative_to(ROOT).parts) for folder in folders)
    assert {ROOT / layer for layer in LAYERS} <= folders


def test_no_dependency_has_a_package_of_the_same_name() -> None:
    owners = importlib.metadata.packages_distributions()
    for layer in LAYERS:
        assert set(owners.get(layer, [])) <= {"roundcrawl"}, owners[layer]
