"""The content gate: one survivor of each set of copies, whatever the split, the order and the rounds."""

from __future__ import annotations

from pickle import dumps, loads
from secrets import token_hex

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors import rounds
from crawler.neardup import sketch_of, text_digest
from crawler.resolve import resolve
from schemas.page import Sketch
from schemas.round import PartitionPart, Tally, VerdictRef
from tests.fakes.gate_rounds import Doc, GateCrawl, Verdict, members_of
from tests.fakes.memory_store import MemoryStorage
from tests.fakes.texts import make_words
from transforms.dedup import MarkDuplicates
from transforms.gate.view import GateSpec, open_gate


def family(rng: np.random.Generator, size: int, words: int = 120) -> list[str]:
    """Return a text and others drifting away from it: chains of near copies, and exact ones."""
    text = make_words(rng, words)
    texts = []
    for _ in range(size):
        texts.append(" ".join(text))
        if rng.random() < 0.7:
            text = list(text)
            for place in rng.integers(0, words, rng.integers(1, 5)):
                text[place] = f"other{rng.integers(1000)}"
    return texts


def make_docs(seed: int, families: int = 8, size: int = 6) -> list[Doc]:
    """Return pages of a few domains, with copies within and across them, and some canonical links."""
    rng = np.random.default_rng(seed)
    docs: list[Doc] = []
    for number in range(families):
        words = 20 if number % 4 == 3 else 120
        for text in family(rng, size, words):
            url = f"http://www.site{rng.integers(4)}.example/{number}/{len(docs)}"
            docs.append(Doc(url, text, int(rng.integers(3)), None, sketch_of(text)))
    for place in rng.integers(0, len(docs), 4).tolist():
        docs[place] = docs[place]._replace(canonical_url=docs[(place + 1) % len(docs)].url)
    return docs


def expected(docs: list[Doc], crawl: GateCrawl) -> list[Verdict]:
    """Return the verdicts of the pure rules on the whole round at once."""
    lost = resolve(members_of(docs, 1), 1, crawl.policy)
    return sorted(Verdict(link.lost.url, link.kept.url, link.kind, link.similarity) for link in lost.values())


def alike_survivors(crawl: GateCrawl) -> list[tuple[str, str]]:
    """Return the pages that stay and would be duplicates of each other."""
    members = members_of([doc._replace(canonical_url=None) for doc in crawl.kept.values()], 1)
    return [(link.lost.url, link.kept.url) for link in resolve(members, 1, crawl.policy).values()]


@settings(max_examples=8)
@given(seed=st.integers(0, 10_000), tasks=st.sampled_from([1, 2, 4]), shards=st.integers(1, 8))
def test_the_split_changes_nothing(tmp_path_factory, seed, tasks, shards) -> None:
    docs = make_docs(seed)
    rng = np.random.default_rng(seed)
    crawl = GateCrawl(tmp_path_factory.mktemp("gate"))
    shuffled = [docs[place] for place in rng.permutation(len(docs))]
    verdicts = crawl.run_round(shuffled, tasks, lambda n: f"{n % shards:04d}-{n // 10:06d}")
    assert verdicts == expected(docs, crawl)
    assert {verdict.kind for verdict in verdicts} == {"exact", "near"}
    assert crawl.kept.keys() == {doc.url for doc in docs} - {verdict.url for verdict in verdicts}


@settings(max_examples=6)
@given(seed=st.integers(0, 10_000), rounds=st.sampled_from([1, 5]))
def test_one_survivor_of_each_cluster_in_one_round_or_five(tmp_path_factory, seed, rounds) -> None:
    docs = make_docs(seed)
    crawl = GateCrawl(tmp_path_factory.mktemp("gate"))
    for number in range(rounds):
        for verdict in crawl.run_round(docs[number::rounds], 2):
            assert verdict.url not in crawl.kept and verdict.kept_url in crawl.kept
            assert verdict.kind == "near" or crawl.kept[verdict.kept_url].sketch is not None
    assert alike_survivors(crawl) == []


@settings(max_examples=4)
@given(seed=st.integers(0, 10_000))
def test_pages_that_change_or_go_keep_the_index_true(tmp_path_factory, seed) -> None:
    rng = np.random.default_rng(seed)
    docs = make_docs(seed, families=5)
    texts = [doc.text for doc in docs]
    crawl = GateCrawl(tmp_path_factory.mktemp("gate"))
    for _ in range(6):
        asked = []
        for place in rng.permutation(len(docs))[: len(docs) // 2].tolist():
            text = None if rng.random() < 0.2 else texts[rng.integers(len(texts))]
            if rng.random() < 0.4 and docs[place].url in crawl.kept:
                text = crawl.kept[docs[place].url].text
            asked.append(Doc(docs[place].url, text, docs[place].depth, None, sketch_of(text or "")))
        before = dict(crawl.kept)
        for verdict in crawl.run_round(asked, 2):
            text = next(doc.text for doc in asked if doc.url == verdict.url)
            assert verdict.kept_url in crawl.kept
            if verdict.kind == "same":
                assert before[verdict.url].text == text and verdict.kept_url == verdict.url
            elif verdict.kind == "exact":
                assert crawl.kept[verdict.kept_url].text == text
            else:
                assert verdict.similarity >= 0.8
        assert alike_survivors(crawl) == []


def long_text(seed: int) -> str:
    return " ".join(make_words(np.random.default_rng(seed), 200))


def test_the_next_copy_takes_the_place_of_a_page_that_went(tmp_path) -> None:
    text = long_text(1)
    crawl = GateCrawl(tmp_path)
    first, second, third = (Doc(f"http://{name}.example/", text) for name in "abc")
    assert crawl.run_round([first]) == []
    assert crawl.run_round([second]) == [Verdict(second.url, first.url, "exact", 1.0)]
    assert crawl.run_round([first._replace(text=None), third]) == []
    assert list(crawl.kept) == [third.url]
    assert crawl.run_round([second]) == [Verdict(second.url, third.url, "exact", 1.0)]


def test_the_next_copy_takes_the_place_of_a_page_that_changed(tmp_path) -> None:
    crawl = GateCrawl(tmp_path)
    near = long_text(1) + " and so on"
    first, second = Doc("http://a.example/", long_text(1)), Doc("http://b.example/", near)
    crawl.run_round([first])
    (verdict,) = crawl.run_round([second])
    assert (verdict.kind, verdict.kept_url) == ("near", first.url)
    assert crawl.run_round([first._replace(text=long_text(2)), second]) == []
    assert crawl.run_round([Doc("http://c.example/", long_text(1))])[0].kept_url == second.url
    assert crawl.run_round([Doc("http://d.example/", long_text(2))])[0].kept_url == first.url


def test_an_unchanged_page_is_told_so_and_stays(tmp_path) -> None:
    crawl = GateCrawl(tmp_path)
    for text in (long_text(1), "a short one"):
        doc = Doc(f"http://{len(text)}.example/", text)
        assert crawl.run_round([doc]) == []
        assert crawl.run_round([doc]) == [Verdict(doc.url, doc.url, "same", 1.0)]
        assert doc.url in crawl.kept


def test_a_page_that_becomes_a_copy_leaves_the_index(tmp_path) -> None:
    crawl = GateCrawl(tmp_path)
    first, second = Doc("http://a.example/", long_text(1)), Doc("http://b.example/", long_text(2))
    crawl.run_round([first, second])
    assert crawl.run_round([second._replace(text=long_text(1))])[0].kept_url == first.url
    assert crawl.run_round([Doc("http://c.example/", long_text(2))]) == []


def sketch_with(changed: int) -> Sketch:
    """Return a sketch that differs from that with 0 in so many of its 128 values, in all the same buckets."""
    signature = bytearray(64)
    for place in range(changed):
        signature[place // 2] |= 1 << (place % 2 * 4)
    bands = tuple(range(7, 1 << 64, 1 << 60))
    return Sketch(text_digest(f"{changed}"), 100, bytes(signature), bands)


@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize(
    ("host", "changed", "is_copy"),
    [
        ("m.a.example", 12, True),
        ("m.a.example", 13, False),
        ("b.example", 24, True),
        ("b.example", 25, False),
    ],
)
def test_within_one_domain_more_is_asked(tmp_path, rounds, host, changed, is_copy) -> None:
    docs = [Doc("http://www.a.example/", "-", 0, None, sketch_with(0))]
    docs += [Doc(f"http://{host}/copy", "-", 0, None, sketch_with(changed))]
    crawl = GateCrawl(tmp_path)
    verdicts = [verdict for n in range(rounds) for verdict in crawl.run_round(docs[n::rounds])]
    assert [verdict.url for verdict in verdicts] == ([docs[1].url] if is_copy else [])


@pytest.mark.parametrize("rounds", [1, 2])
def test_a_copy_stays_where_its_original_loses_to_a_page_of_the_copys_own_domain(tmp_path, rounds) -> None:
    kept = Doc("http://www.a.example/", "-", 0, None, sketch_with(0))
    other = Doc("http://b.example/", "-", 1, None, sketch_with(20))
    copies = [Doc(f"http://www.a.example/{n}", "-", 2, None, sketch_with(20)) for n in range(2)]
    crawl = GateCrawl(tmp_path)
    lots = [[kept, other, *copies]] if rounds == 1 else [[kept], [other, *copies]]
    verdicts = [verdict[:3] for lot in lots for verdict in crawl.run_round(lot)]
    assert verdicts == [(other.url, kept.url, "near"), (copies[1].url, copies[0].url, "exact")]


def test_the_threshold_of_the_round_counts(tmp_path) -> None:
    docs = [Doc(f"http://{n}.example/", "-", 0, None, sketch_with(n)) for n in (0, 15)]
    assert len(GateCrawl(tmp_path / "lax").run_round(docs)) == 1
    assert GateCrawl(tmp_path / "strict", near_dup_threshold=0.9).run_round(docs) == []
    assert len(GateCrawl(tmp_path / "laxer", near_dup_threshold=0.85).run_round(docs)) == 1


def test_runs_are_merged_and_still_answer(tmp_path) -> None:
    crawl = GateCrawl(tmp_path, partitions=2)
    for number in range(20):
        crawl.run_round([Doc(f"http://h{number}.example/", long_text(number))])
    assert max(entry.level for entry in crawl.files) >= 1
    again = [Doc(f"http://again{number}.example/", long_text(number)) for number in range(20)]
    verdicts = crawl.run_round(again, 2)
    assert {verdict.kept_url for verdict in verdicts} == {f"http://h{n}.example/" for n in range(20)}


def test_the_same_in_an_object_store(tmp_path, monkeypatch) -> None:
    docs, local = make_docs(3), GateCrawl(tmp_path)
    expected_verdicts = [local.run_round(docs[number::2]) for number in range(2)]
    store = MemoryStorage(root="mem://bucket/verdicts")
    monkeypatch.setattr(rounds, "open_storage", lambda root: store)
    remote = GateCrawl(store.root)
    assert [remote.run_round(docs[number::2], 2) for number in range(2)] == expected_verdicts


@pytest.mark.parametrize("shards", [1, 8])
def test_as_a_beam_job(tmp_path, shards) -> None:
    crawl = GateCrawl(tmp_path)
    docs = make_docs(7)
    crawl.run_round(docs[:10])
    (tmp_path / "out").mkdir()
    spec = crawl.next_spec()
    view = open_gate(GateSpec.of_round(spec))
    refs = crawl.parsed_refs(view, docs[10:], lambda n: f"{n % shards:04d}-{n // 20:06d}")
    with beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"])) as pipeline:
        gate = pipeline | beam.Create(refs) | MarkDuplicates(spec)
        items = list(gate) | beam.Flatten()
        items | beam.Map(
            lambda item, folder: (folder / token_hex(8)).write_bytes(dumps(item)), tmp_path / "out"
        )
    outputs = [loads(path.read_bytes()) for path in (tmp_path / "out").iterdir()]
    verdicts = crawl.commit(view, docs[10:], outputs)
    other = GateCrawl(tmp_path / "other")
    other.run_round(docs[:10])
    assert verdicts == other.run_round(docs[10:])
    assert {type(item) for item in outputs} >= {VerdictRef, PartitionPart, Tally}
