"""The report in a real browser: it draws, nothing runs over the edge, light, dark and on a narrow screen."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pipelines import report
from tests.consumers.conftest import CACHE, CHROMIUM_FLAGS
from tests.fakes.crawls import ToyCrawl
from tests.fakes.large_round import write_round

LIGHT, DARK = "--blink-settings=preferredColorScheme=1", "--blink-settings=preferredColorScheme=0"
SHOTS = CACHE / "screenshots"
CROWDED = {"urls": 60_000, "hosts": 1_200, "known": 200_000}


@pytest.fixture(scope="module")
def pages(crawl: ToyCrawl, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the reports of a toy round and of a large one."""
    large = tmp_path_factory.mktemp("large") / "crawl"
    write_round(large, **CROWDED)
    assert report.main([f"--crawl={crawl.folder}", "--round=3"]) == 0
    assert report.main([f"--crawl={large}"]) == 0
    return {
        "toy": crawl.folder / "reports/000003.html",
        "large": large / "reports/000003.html",
    }


def shoot(
    chromium: str, page: Path, profile: Path, name: str, width: int, height: int, *flags: str
) -> np.ndarray:
    """Return the pixels of a page as the browser draws it (rows, columns, RGB); the picture is kept to look at."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    target = SHOTS / f"{name}.png"
    command = [chromium, *CHROMIUM_FLAGS, *flags, f"--user-data-dir={profile}"]
    command += [f"--window-size={width},{height}", f"--screenshot={target}", page.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=90)
    with Image.open(target) as image:
        pixels = np.asarray(image.convert("RGB")).astype(int)
    assert pixels.shape[:2] == (height, width)
    return pixels


def is_ground(pixels: np.ndarray) -> np.ndarray:
    """Return which pixels have the colour of the page's ground, that of its first pixel."""
    return np.abs(pixels - pixels[0, 0]).max(axis=2) <= 2


@pytest.mark.parametrize("name", ["toy", "large"])
@pytest.mark.parametrize(("scheme", "flag"), [("light", LIGHT), ("dark", DARK)])
def test_the_page_draws_in_either_scheme(
    chromium: str, pages: dict[str, Path], tmp_path: Path, name: str, scheme: str, flag: str
) -> None:
    pixels = shoot(chromium, pages[name], tmp_path, f"{name}-{scheme}", 1280, 5_000, flag)
    ground = pixels[0, 0].mean()
    assert ground > 200 if scheme == "light" else ground < 60
    assert is_ground(pixels)[:, :20].all() and is_ground(pixels)[:, -20:].all()
    assert (~is_ground(pixels)).any(axis=1).mean() > 0.9
    colors = {tuple(color) for color in pixels[::3, ::3].reshape(-1, 3).tolist()}
    series = [(0x2F, 0x6D, 0xB3), (0xC8, 0x61, 0x0F), (0x3D, 0x7F, 0x4B)]
    if scheme == "dark":
        series = [(0x6E, 0xA6, 0xE6), (0xF0, 0xA0, 0x5A), (0x82, 0xC4, 0x90)]
    assert set(series) <= colors
    print(f"screenshot: {SHOTS}/{name}-{scheme}.png")


def test_a_narrow_screen_needs_no_sideways_scrolling(
    chromium: str, pages: dict[str, Path], tmp_path: Path
) -> None:
    for name, page in pages.items():
        pixels = shoot(chromium, page, tmp_path / name, f"{name}-narrow", 500, 6_000, LIGHT)
        assert is_ground(pixels)[:, -8:].all(), name


def test_the_browser_finds_nothing_to_complain_about(
    chromium: str, pages: dict[str, Path], tmp_path: Path
) -> None:
    for page in pages.values():
        command = [
            chromium,
            *CHROMIUM_FLAGS,
            "--enable-logging=stderr",
            f"--user-data-dir={tmp_path}/profile",
        ]
        done = subprocess.run(
            [*command, "--dump-dom", page.as_uri()], check=True, capture_output=True, text=True, timeout=90
        )
        assert done.stdout.count("<svg") == page.read_text(encoding="utf-8").count("<svg") > 8
        assert not re.findall(r"CONSOLE.*", done.stderr)
