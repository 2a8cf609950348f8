"""What cannot be run gets one line that names the value and the remedy, exit 2, and nothing is written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines import inject
from runners.options import UsageError
from runners.round_options import parse_round

PUBLIC = "http://example.com/"


def run(command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", f"pipelines.{command}", *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)


def crawl_of(path: Path, *arguments: str) -> str:
    assert inject.main([f"--crawl={path}", *arguments]) == 0
    return f"--crawl={path}"


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "no URL"),
        (b"# only a comment\n\n", "no URL"),
        (b"ftp://example.com/\nmailto:me@example.com\nnot a url\n", "no URL"),
        (b"\xff\xfe\x00bad", "UTF-8"),
    ],
)
def test_a_seed_file_without_a_url_is_refused(tmp_path: Path, content: bytes, word: str) -> None:
    seeds = tmp_path / "seeds.txt"
    seeds.write_bytes(content)
    result = run("inject", f"--crawl={tmp_path / 'crawl'}", f"--seeds={seeds}")
    assert result.returncode == 2
    last = result.stderr.splitlines()[-1]
    assert word in last and str(seeds) in last
    assert not (tmp_path / "crawl").exists()


def test_a_missing_seed_file_is_named(tmp_path: Path) -> None:
    result = run("inject", f"--crawl={tmp_path / 'crawl'}", "--seeds=nowhere.txt")
    assert result.returncode == 2
    assert "nowhere.txt" in result.stderr and len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "crawl").exists()


def test_one_bad_seed_among_good_ones_is_skipped(tmp_path: Path) -> None:
    result = run("inject", f"--crawl={tmp_path / 'crawl'}", PUBLIC, "ftp://example.com/", "example.com")
    assert result.returncode == 0
    assert result.stdout.splitlines()[-1] == "accepted: 1, known: 0, refused: 2"
    assert "'example.com': invalid_url" in result.stderr
    assert "ftp://example.com/" in result.stderr and "unsupported_scheme" in result.stderr


def test_injecting_again_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    crawl = tmp_path / "crawl"
    crawl_of(crawl, PUBLIC)
    before = sorted(path.name for path in crawl.rglob("*"))
    crawl_of(crawl, "http://EXAMPLE.com:80/#top")
    assert capsys.readouterr().out.splitlines()[-1] == "accepted: 0, known: 1, refused: 0"
    assert sorted(path.name for path in crawl.rglob("*")) == before


def test_a_crawl_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "crawl"
    file.write_text("not a folder")
    for command, more in (("inject", [PUBLIC]), ("round", []), ("plan", []), ("status", []), ("audit", [])):
        result = run(command, f"--crawl={file}", *more)
        assert result.returncode == 2, (command, result)
        assert str(file) in result.stderr and len(result.stderr.splitlines()) == 1
    assert file.read_text() == "not a folder"


def test_a_folder_that_is_no_crawl_is_refused(tmp_path: Path) -> None:
    for command in ("round", "plan", "status", "audit"):
        result = run(command, f"--crawl={tmp_path / 'nothing'}")
        assert result.returncode == 2, (command, result)
        assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize(("version", "remedy"), [(99, "use a newer program"), (0, "or start a new crawl")])
def test_a_crawl_of_another_format_is_refused(tmp_path: Path, version: int, remedy: str) -> None:
    crawl = tmp_path / "crawl"
    crawl_of(crawl, PUBLIC)
    document = json.loads((crawl / "crawl.json").read_text())
    (crawl / "crawl.json").write_text(json.dumps({**document, "format_version": version}))
    result = run("round", f"--crawl={crawl}", "--contact=mailto:me@example.com")
    assert result.returncode == 2 and f"format version {version};" in result.stderr
    assert remedy in result.stderr and len(result.stderr.splitlines()) == 1
    assert not (crawl / "rounds").exists()


@pytest.mark.parametrize(
    ("flag", "word"),
    [
        ("--min_dely_seconds=1", "--min_delay_seconds"),
        ("--min_delay_seconds=-1", "0 or more"),
        ("--min_delay_seconds=fast", "'fast'"),
        ("--min_delay_seconds=nan", "finite"),
        ("--round_minutes=0", "greater than 0"),
        ("--rounds=0", "greater than 0"),
        ("--near_dup_threshold=2", "0.5 to 1"),
        ("--warc_max_bytes=3000000000", "32-bit"),
        ("--as_of=yesterday", "RFC 3339"),
        ("--as_of=2026-01-01T00:00:00", "RFC 3339"),
        ("--min_del=1", "unknown flag"),
        ("stray", "stray"),
    ],
)
def test_a_bad_flag_is_named_with_its_remedy(flag: str, word: str) -> None:
    with pytest.raises(UsageError, match=word):
        parse_round(["--crawl=somewhere", flag])


@pytest.mark.parametrize(
    "flag",
    ["--connect_to=nonsense", "--connect_to=a:b:c:d", "--nameservers=example", "--runner=NoSuchRunner"],
)
def test_a_bad_value_of_the_network_is_refused(tmp_path: Path, flag: str) -> None:
    crawl = crawl_of(tmp_path / "crawl", PUBLIC)
    result = run("round", crawl, "--contact=mailto:me@example.com", flag)
    assert result.returncode == 2 and len(result.stderr.splitlines()) == 1, result.stderr
    assert flag.partition("=")[2] in result.stderr
    assert not (tmp_path / "crawl/rounds").exists()


def test_a_public_crawl_needs_a_contact(tmp_path: Path) -> None:
    crawl = crawl_of(tmp_path / "crawl", PUBLIC)
    result = run("round", crawl)
    assert result.returncode == 2
    assert "--contact" in result.stderr and len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "crawl/rounds").exists()


@pytest.mark.parametrize("given", ["--salt=other", "--scope=host", "--partitions=8"])
def test_what_is_fixed_for_a_crawl_cannot_be_changed(tmp_path: Path, given: str) -> None:
    crawl = crawl_of(tmp_path / "crawl", PUBLIC, "--salt=one")
    with pytest.raises(UsageError, match=given.split("=")[0]):
        inject.main([crawl, given, "http://example.org/"])


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("domains: {example.org: {min_dely_seconds: 1}}", "min_dely_seconds"),
        ("domains: {example.org: {round_urls: -1}}", "-1"),
        ("- a list", "domains"),
        ("domains: [", "YAML"),
    ],
)
def test_a_bad_policy_file_is_refused(tmp_path: Path, text: str, word: str) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(text)
    with pytest.raises(UsageError, match=word):
        inject.main([f"--crawl={tmp_path / 'crawl'}", PUBLIC, f"--policy={policy}"])
    assert not (tmp_path / "crawl").exists()


def test_commands_that_run_no_job_import_no_beam(tmp_path: Path) -> None:
    crawl = crawl_of(tmp_path / "crawl", PUBLIC)
    for command in ("inject", "plan", "status", "audit"):
        code = (
            f"import sys; from pipelines import {command} as c; sys.argv = ['x']\n"
            f"c.main([{crawl!r}] + (['http://example.org/'] if {command!r} == 'inject' else []))\n"
            "assert 'apache_beam' not in sys.modules"
        )
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert result.returncode == 0, (command, result.stderr)
