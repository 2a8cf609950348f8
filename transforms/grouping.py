"""Elements of several kinds under one key, each kind under its row coder.

Beam's CoGroupByKey pickles the values, since their common type is a union.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam import coders


class Tagged(NamedTuple):
    """An element on its way to its key: the name of its kind, and its bytes."""

    kind: str
    data: bytes


coders.registry.register_coder(Tagged, coders.RowCoder)


@lru_cache(maxsize=64)
def _coder(element_type: type) -> Any:
    return coders.registry.get_coder(element_type)


class Kinds:
    """The kinds of element that meet: the type of each by its name. Picklable."""

    def __init__(self, **types: type) -> None:
        self.types = types

    def tagged(self, kind: str, element: Any) -> Tagged:
        """Return the element as it travels."""
        return Tagged(kind, _coder(self.types[kind]).encode(element))

    def opened(self, elements: Iterable[Tagged]) -> dict[str, list[Any]]:
        """Return the elements of each kind; an empty list for a kind without any."""
        groups: dict[str, list[Any]] = {kind: [] for kind in self.types}
        for element in elements:
            groups[element.kind].append(_coder(self.types[element.kind]).decode(element.data))
        return groups


class GroupKinds(beam.PTransform):
    """{kind: PCollection[(key, element of that kind)]} -> PCollection[(key, Iterable[Tagged])].

    ``Kinds.opened`` is what the next step makes of the values. Keys are of ``key_type``.
    """

    def __init__(self, kinds: Kinds, key_type: Any) -> None:
        super().__init__()
        self.kinds = kinds
        self.key_type = key_type

    def expand(self, inputs: Mapping[str, beam.PCollection]) -> beam.PCollection:
        """Tag each kind, then group all together."""
        pair = tuple[self.key_type, Tagged]  # type: ignore[name-defined]
        tagged = [
            keyed | f"Tag_{kind}" >> beam.MapTuple(_Tag(self.kinds, kind)).with_output_types(pair)
            for kind, keyed in inputs.items()
        ]
        return tagged | "Together" >> beam.Flatten() | "ByKey" >> beam.GroupByKey()


class _Tag:
    def __init__(self, kinds: Kinds, kind: str) -> None:
        self.kinds, self.kind = kinds, kind

    def __call__(self, key: Any, element: Any) -> tuple[Any, Tagged]:
        return key, self.kinds.tagged(self.kind, element)
