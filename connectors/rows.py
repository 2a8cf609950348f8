"""The project's row types as Arrow tables: the one place that derives a file's types from a NamedTuple."""

from __future__ import annotations

import types
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import pyarrow as pa

Row = TypeVar("Row", bound=tuple[Any, ...])

_SCALARS = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_(), bytes: pa.binary()}
_LISTS = {str: pa.list_(pa.string()), int: pa.list_(pa.uint64()), bytes: pa.list_(pa.binary())}


class _Field(NamedTuple):
    """One field of a row type: its Arrow field, and the value that an older file without it stands for."""

    arrow: Any
    has_default: bool
    default: Any


def row_schema(row_type: type[tuple[Any, ...]]) -> pa.Schema:
    """Return the Arrow schema of a NamedTuple, one column per field in the order of declaration.

    str -> string, float -> double, bool -> bool, bytes -> binary, int -> int64, or uint64 when the
    field's name ends in ``_key``; ``tuple[str, ...]`` -> list<string>, ``tuple[int, ...]`` ->
    list<uint64> (hashes), ``tuple[bytes, ...]`` -> list<binary>. Only ``X | None`` is nullable.
    Raises TypeError for any other annotation.
    """
    return pa.schema([field.arrow for field in _fields(row_type)])


def rows_to_table(rows: Iterable[tuple[Any, ...]], row_type: type[tuple[Any, ...]]) -> pa.Table:
    """Return the rows as a table with the columns of ``row_schema(row_type)``, order kept.

    Text that UTF-8 cannot carry (lone surrogates) is stored with ``?`` in its place. Raises what
    Arrow raises for a value that is not of its field's type, and ValueError for rows of unequal length.
    """
    schema = row_schema(row_type)
    columns = list(zip(*rows, strict=True))
    if not columns:
        return schema.empty_table()
    arrays = [column_array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def table_to_rows(table: pa.Table, row_type: type[Row]) -> list[Row]:
    """Return a table's rows as NamedTuples, order kept: the inverse of ``rows_to_table``.

    A field that the table lacks takes its default, so that a file from before the field can be read;
    columns that are no field are ignored. Raises ValueError for a missing field without a default.
    """
    columns: list[Sequence[Any]] = []
    present = set(table.column_names)
    for field in _fields(row_type):
        name = field.arrow.name
        if name in present:
            columns.append(_values(table.column(name).cast(field.arrow.type)))
        elif field.has_default:
            columns.append([field.default] * table.num_rows)
        else:
            raise ValueError(f"column {name} of {row_type.__name__} is missing")
    return list(map(partial(tuple.__new__, row_type), zip(*columns, strict=True)))


def column_array(values: Sequence[Any], kind: Any) -> Any:
    """Return values as an Arrow array of the type ``kind``, with ``?`` for text that UTF-8 cannot carry."""
    try:
        return pa.array(values, type=kind)
    except UnicodeEncodeError:
        return pa.array([_encodable(value) for value in values], type=kind)


@lru_cache(maxsize=64)
def _fields(row_type: type[tuple[Any, ...]]) -> tuple[_Field, ...]:
    defaults: dict[str, Any] = cast(Any, row_type)._field_defaults
    return tuple(
        _Field(_arrow_field(name, annotation), name in defaults, defaults.get(name))
        for name, annotation in get_type_hints(row_type).items()
    )


def _arrow_field(name: str, annotation: Any) -> Any:
    nullable = False
    if get_origin(annotation) in (Union, types.UnionType):
        arguments = get_args(annotation)
        nullable = type(None) in arguments
        (annotation,) = [kind for kind in arguments if kind is not type(None)]
    if annotation is int and name.endswith("_key"):
        return pa.field(name, pa.uint64(), nullable)
    if annotation in _SCALARS:
        return pa.field(name, _SCALARS[annotation], nullable)
    item = get_args(annotation)
    if get_origin(annotation) is tuple and len(item) == 2 and item[1] is Ellipsis and item[0] in _LISTS:
        return pa.field(name, _LISTS[item[0]], nullable)
    raise TypeError(f"field {name} has no column type: {annotation!r}")


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, tuple):
        return tuple(_encodable(item) for item in value)
    return value


def _values(column: Any) -> Sequence[Any]:
    """Return a column as Python values; through numpy, which is several times faster than ``to_pylist``."""
    kind = column.type
    if column.null_count == len(column):
        return [None] * len(column)
    if pa.types.is_list(kind):
        return [None if item is None else tuple(item) for item in column.to_pylist()]
    if column.null_count and not (pa.types.is_string(kind) or pa.types.is_binary(kind)):
        filled = column.fill_null(pa.scalar(0).cast(kind)).to_numpy().astype(object)
        filled[column.is_null().to_numpy()] = None
        return cast(Sequence[Any], filled.tolist())
    return cast(Sequence[Any], column.to_numpy(zero_copy_only=False).tolist())
