"""The gate on texts without a crawl."""

from __future__ import annotations

import apache_beam as beam
import numpy as np
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.util import assert_that, equal_to

from tests.fakes.texts import edited_pairs, make_words
from transforms.texts import DeduplicateTexts, TextVerdict


def test_copies_lose_to_the_least_id(tmp_path) -> None:
    one, other = (" ".join(make_words(np.random.default_rng(seed), 300)) for seed in (1, 2))
    texts = [("b", one), ("a", f"  {one.upper()} "), ("d", other), ("c", "only a few words"), ("e", "")]
    expected = [TextVerdict("b", "a", "exact", 1.0)]
    with beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"])) as pipeline:
        verdicts = pipeline | beam.Create(texts) | DeduplicateTexts(str(tmp_path))
        assert_that(verdicts, equal_to(expected))


def test_near_copies_are_found_across_bundles(tmp_path) -> None:
    pairs = [*edited_pairs(0.97, 4, seed=1), *edited_pairs(0.5, 4, seed=2)]
    texts = [(f"{n}-{side}", text) for n, pair in enumerate(pairs) for side, text in enumerate(pair[:2])]
    with beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"])) as pipeline:
        bundles = [pipeline | f"Create{n}" >> beam.Create(texts[n::3]) for n in range(3)]
        verdicts = bundles | beam.Flatten() | DeduplicateTexts(str(tmp_path), 0.9)
        lost = verdicts | beam.Map(lambda verdict: (verdict.text_id, verdict.kept_id, verdict.kind))
        assert_that(lost, equal_to([(f"{n}-1", f"{n}-0", "near") for n in range(4)]))
        assert_that(
            verdicts | "Similar" >> beam.Map(lambda verdict: 0.9 <= verdict.similarity <= 1),
            equal_to([True] * 4),
            label="Similarities",
        )
