"""The official SDKs' types, put to two uses: strategies for all that they allow, and a check that allows no more."""

from __future__ import annotations

import collections.abc
import functools
import types
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin

from hypothesis import strategies as st
from typing_extensions import get_type_hints, is_typeddict

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
"""Small JSON values of any shape."""

Chooser = collections.abc.Callable[[str, str], st.SearchStrategy[Any] | None]
"""Gives a better strategy for a field: called with the TypedDict's name and the field's; None leaves it to the type."""


def allowed(kind: Any, choose: Chooser) -> st.SearchStrategy[Any]:
    """Whatever a type of an SDK's request allows, as JSON values."""
    kind = _plain(kind)
    if is_typeddict(kind):
        return _typed_dict(kind, choose)
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return st.one_of([allowed(arg, choose) for arg in args])
    if origin is Literal:
        return st.sampled_from(args)
    if origin is dict:
        return st.dictionaries(st.text(max_size=4), allowed(args[1], choose), max_size=2)
    if _is_list(kind):
        return st.lists(allowed(args[0], choose), max_size=2)
    simple: dict[Any, st.SearchStrategy[Any]] = {
        str: st.text(max_size=6),
        int: st.integers(-3, 3000),
        float: st.floats(-3, 3, allow_nan=False),
        bool: st.booleans(),
        type(None): st.none(),
        object: JSON,
    }
    return simple.get(kind, st.nothing())


def problems(value: Any, kind: Any, place: str = "$") -> list[str]:
    """Say where a value isn't what a type allows; keys that a TypedDict doesn't have are problems too."""
    kind = _plain(kind)
    if is_typeddict(kind):
        return _dict_problems(value, kind, place)
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        tries = [problems(value, arg, place) for arg in args]
        return [] if any(not found for found in tries) else min(tries, key=len)
    if origin is Literal:
        return [] if value in args else [f"{place}: {value!r} isn't one of {args}"]
    if origin is dict:
        if not isinstance(value, dict):
            return [f"{place}: {value!r} is no object"]
        return [found for key, item in value.items() for found in problems(item, args[1], f"{place}.{key}")]
    if _is_list(kind):
        if not isinstance(value, list):
            return [f"{place}: {value!r} is no list"]
        return [found for i, item in enumerate(value) for found in problems(item, args[0], f"{place}[{i}]")]
    if kind in (object, Any):
        return []
    expected = (int, float) if kind is float else kind
    good = isinstance(expected, type | tuple) and isinstance(value, expected)
    if kind in (int, float) and isinstance(value, bool):
        good = False
    return [] if good else [f"{place}: {value!r} is no {kind}"]


def _plain(kind: Any) -> Any:
    while get_origin(kind) in (Required, NotRequired, Annotated):
        kind = get_args(kind)[0]
    return kind


def _is_list(kind: Any) -> bool:
    return get_origin(kind) in (list, collections.abc.Iterable, collections.abc.Sequence)


@functools.cache
def _fields(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _typed_dict(kind: Any, choose: Chooser) -> st.SearchStrategy[Any]:
    must: dict[str, st.SearchStrategy[Any]] = {}
    may: dict[str, st.SearchStrategy[Any]] = {}
    for name, hint in _fields(kind).items():
        better = choose(kind.__name__, name)
        strategy = better if better is not None else _later(hint, choose)
        (must if get_origin(hint) is Required else may)[name] = strategy
    return st.fixed_dictionaries(must, optional=may)


def _later(kind: Any, choose: Chooser) -> st.SearchStrategy[Any]:
    return st.deferred(lambda: allowed(kind, choose))


def _dict_problems(value: Any, kind: Any, place: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{place}: {value!r} is no object"]
    fields = _fields(kind)
    extra = [] if kind.__name__ == "InputSchemaTyped" else value.keys() - fields.keys()
    found = [f"{place}: {name!r} isn't known to {kind.__name__}" for name in extra]
    missing = [name for name, hint in fields.items() if get_origin(hint) is Required and name not in value]
    found += [f"{place}: {name!r} is missing" for name in missing]
    for name in value.keys() & fields.keys():
        found += problems(value[name], fields[name], f"{place}.{name}")
    return found
