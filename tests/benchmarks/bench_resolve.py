"""Time to find one survivor among many copies, and how far copies lie from the page they lost to."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterable

import numpy as np

from crawler.neardup import sketch_of
from crawler.resolve import AlikePolicy, Member, Order, Page, resolve
from tests.fakes.texts import exact_jaccard, make_words

POLICY = AlikePolicy()


def member_of(number: int, text: str) -> Member:
    """Return a page of a domain of its own with this text."""
    sketch = sketch_of(text)
    page = Page(
        Order(1, 1, number % 5, f"{number:08}", number, number), f"http://h{number}.example/", f"h{number}"
    )
    return Member(page, sketch.text_digest, sketch.signature, sketch.bands)


def seconds_for(members: list[Member]) -> tuple[float, int]:
    """Return the CPU seconds to resolve these pages, and the survivors."""
    began = time.process_time()
    lost = resolve(members, 1, POLICY)
    return round(time.process_time() - began, 2), len(members) - len(lost)


def copies(count: int, is_exact: bool) -> list[Member]:
    """Return copies of one boilerplate page; if not exact, each says something of its own."""
    first = member_of(0, " ".join(make_words(np.random.default_rng(1), 600)))
    made = []
    for number in range(count):
        page = first.page._replace(order=first.page.order._replace(url_key=number), url=f"http://h/{number}")
        digest = first.text_digest if is_exact else number.to_bytes(16, "big")
        made.append(Member(page._replace(domain=f"d{number}"), digest, first.signature, first.bands))
    return made


def family(rng: np.random.Generator, size: int) -> Iterable[str]:
    """Yield a text and rewritten forms of it, each with a random part of its words replaced."""
    words = make_words(rng, 400)
    yield " ".join(words)
    for _ in range(size - 1):
        changed = rng.random(400) < rng.choice([0.002, 0.01, 0.02, 0.05])
        others = make_words(rng, 400)
        yield " ".join(
            other if change else word for word, other, change in zip(words, others, changed, strict=True)
        )


def quality(families: int = 200, size: int = 8, seed: int = 1) -> dict[str, float]:
    """Return what became of families of alike texts, judged by their exact word-5-gram similarity."""
    rng = np.random.default_rng(seed)
    texts = [text for _ in range(families) for text in family(rng, size)]
    members = [member_of(number, text) for number, text in enumerate(texts)]
    lost = resolve(members, 1, POLICY)
    true = [
        exact_jaccard(texts[order.url_key], texts[link.kept.order.url_key]) for order, link in lost.items()
    ]
    missed = 0
    for start in range(0, len(texts), size):
        stay = [n for n in range(start, start + size) if members[n].page.order not in lost]
        missed += sum(exact_jaccard(texts[a], texts[b]) >= 0.85 for a in stay for b in stay if a < b)
    return {
        "pages": len(texts),
        "duplicates": len(lost),
        "least_true_similarity_to_survivor": round(min(true), 3),
        "duplicates_truly_below_0.7": sum(value < 0.7 for value in true),
        "survivor_pairs_truly_above_0.85": missed,
    }


def run(count: int = 100_000) -> dict[str, object]:
    """Return seconds for half and all of ``count`` copies, exact and near, and the quality on families."""
    results: dict[str, object] = {}
    for name, is_exact in (("exact", True), ("near", False)):
        for number in (count // 2, count):
            results[f"{name}_copies_{number}_seconds_survivors"] = seconds_for(copies(number, is_exact))
    results["peak_rss_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    results["families"] = quality()
    return results


if __name__ == "__main__":
    for figure, value in run().items():
        print(f"{figure:42}", value)
