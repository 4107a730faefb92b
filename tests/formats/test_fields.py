"""A request's top-level fields."""

from __future__ import annotations

from typing import Any

import pytest

from zurelay.errors import InvalidRequest
from zurelay.formats.fields import COUNT, TEXT, Fields
from zurelay.jsonedit import Document

BODY = b'{"a": 1, "b": null, "c": {"d": 1e400}, "e": "x"}'


def rest(fields: Fields) -> dict[str, bytes]:
    out: dict[str, Any] = {}
    fields.add_rest(out)
    return {name: bytes(value) for name, value in out.items()}


def test_what_nobody_took_is_left_for_a_named_model() -> None:
    fields = Fields(BODY, named=True)

    assert (fields.take("a", COUNT), fields.take("missing", COUNT)) == (1, None)
    fields.drop("e", "missing")

    assert rest(fields) == {"c": b'{"d": 1e400}'}


def test_nothing_is_left_for_another_model() -> None:
    assert rest(Fields(BODY, named=False)) == {}


def test_what_other_fields_said_already_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="`e` says what other fields say already"):
        Fields(BODY, named=True).add_rest({"e": 1})


def test_a_document_that_is_parsed_already_will_do() -> None:
    assert Fields(Document.parse(BODY), named=True).take("e", TEXT) == "x"


def test_null_is_absent() -> None:
    fields = Fields(BODY, named=True)

    assert (fields.take("b", TEXT), fields.raw("b")) == (None, None)


def test_a_wrong_type_names_the_field() -> None:
    with pytest.raises(InvalidRequest) as caught:
        Fields(BODY, named=False).take("a", TEXT)

    assert caught.value.param == "a"


@pytest.mark.parametrize(("named", "always", "refused"), [(1, 0, 1), (1, 1, 1), (0, 1, 1), (0, 0, 0)])
def test_a_field_without_a_counterpart_is_refused_or_dropped(named: int, always: int, refused: int) -> None:
    fields = Fields(BODY, named=bool(named))

    try:
        fields.refuse_unless({"a": (2,)}, always=bool(always))
        found = False
    except InvalidRequest:
        found = True

    assert found == bool(refused)
    assert "a" not in rest(fields)


def test_a_value_that_asks_for_nothing_is_no_matter() -> None:
    Fields(BODY, named=True).refuse_unless({"a": (0, 1), "b": (), "missing": ()}, always=True)


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"a": NaN}'])
def test_what_is_no_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest):
        Fields(body, named=False)
