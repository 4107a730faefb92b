from pathlib import Path
from typing import Any

import msgspec
import pytest

from zurelay.simulate import faults
from zurelay.simulate.faults import BadFault, Fault, Wish

SPECS = {
    "": Fault(),
    "ok": Fault(ok=True),
    "reset": Fault(reset=True),
    "status:503": Fault(status=503),
    "status:429:retry-after=5": Fault(status=429, retry_after=5),
    "status:429:retry-after-date=5:code=insufficient_quota": Fault(
        status=429, retry_after_date=5, code="insufficient_quota"
    ),
    "slow-head:0.5": Fault(slow_head=0.5),
    " slow-head:1 + cut:3 ": Fault(slow_head=1.0, cut=3),
    "error-200+error:429": Fault(error_200=True, error=429),
    "tokens:5+size:10+gap:0": Fault(tokens=5, size=10, gap=0.0),
    "refuse:max_tokens": Fault(refuse="max_tokens"),
}


@pytest.mark.parametrize("spec", SPECS)
def test_a_spec_says_what_goes_wrong(spec: str) -> None:
    assert SPECS[spec] == faults.parse(spec)


BAD = {
    "nonsense": "There is no fault 'nonsense'",
    "ok:1": "'ok' takes no value",
    "cut": "'cut' needs a value",
    "cut:x": "Expected `int",
    "cut:-1": "Expected `int` >= 0",
    "gap:inf": "Expected `float` <= 3600",
    "gap:nan": "can't be read",
    "status:99": "Expected `int` >= 200",
    "status:429:later=5": "There is no fault 'later'",
    "cut:1+abort:2": "can't be combined",
}


@pytest.mark.parametrize("spec", BAD)
def test_a_spec_that_cant_be_read_says_why(spec: str) -> None:
    with pytest.raises(BadFault, match=BAD[spec].replace("(", r"\(")):
        faults.parse(spec)


def test_an_unknown_word_lists_all_words() -> None:
    with pytest.raises(BadFault) as caught:
        faults.parse("nonsense")
    assert [word for word in faults.WORDS if word not in str(caught.value)] == []


def test_every_break_is_a_word() -> None:
    assert [word for word in faults.BREAKS if word not in faults.WORDS] == []


def test_every_word_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "simulate.md").read_text()
    assert [word for word in faults.WORDS if f"`{word}`" not in page and f"`{word}:" not in page] == []


class Place(msgspec.Struct, frozen=True):
    text: str = "hi"
    body: Any = None
    header: str | None = None
    path: str | None = None


WISHES = {
    "nothing": (Place(), Wish(key=("hi",))),
    "a path": (Place(path="cut:1"), Wish(specs=("cut:1",), key=("hi",))),
    "a header before a path": (Place(header="hang", path="cut:1"), Wish(specs=("hang",), key=("hi",))),
    "a mark before a header": (
        Place(text="[[simulate reset]]", header="hang"),
        Wish(specs=("reset",), key=("[[simulate reset]]",)),
    ),
    "a body before a mark": (
        Place(text="[[simulate reset]]", body={"fault": "stall", "key": "k"}),
        Wish(specs=("stall",), key=("k",)),
    ),
    "a body that is a spec": (Place(body="stall"), Wish(specs=("stall",), key=("hi",))),
    "a body that is a list": (Place(body=["stall", "ok"]), Wish(specs=("stall", "ok"), key=("hi",))),
    "a sequence in a header": (Place(header="status:500,ok"), Wish(specs=("status:500", "ok"), key=("hi",))),
    "this model": (Place(body={"faults": {"m": "hang"}}), Wish(specs=("hang",), key=("hi", "m"))),
    "this model in turn": (
        Place(body={"key": "k", "faults": {"m": ["hang", "ok"]}, "fault": "cut:1"}),
        Wish(specs=("hang", "ok"), key=("k", "m")),
    ),
    "another model": (Place(body={"faults": {"other": "hang"}}), Wish(key=("hi",))),
    "another model and all": (
        Place(body={"faults": {"other": "hang"}, "fault": "cut:1"}),
        Wish(specs=("cut:1",), key=("hi",)),
    ),
    "another model and a path": (
        Place(body={"faults": {"other": "hang"}}, path="cut:1"),
        Wish(specs=("cut:1",), key=("hi",)),
    ),
    "a text": (
        Place(body={"text": "a", "reasoning": "b"}, path="cut:1"),
        Wish(specs=("cut:1",), key=("hi",), text="a", reasoning="b"),
    ),
    "JSON in a mark": (
        Place(text='x [[simulate {"faults": {"m": ["hang", "ok"]}, "key": "k"}]] y'),
        Wish(specs=("hang", "ok"), key=("k", "m")),
    ),
}


@pytest.mark.parametrize("name", WISHES)
def test_a_fault_is_found_where_it_is_asked_for(name: str) -> None:
    place, expected = WISHES[name]
    assert expected == faults.wish("m", place.text, place.body, place.header, place.path)


@pytest.mark.parametrize("body", [1, {"falt": "ok"}, {"fault": 1}, {"faults": ["ok"]}, {"key": None, "faults": None}])
def test_a_body_field_of_another_shape_is_refused(body: Any) -> None:
    with pytest.raises(BadFault, match="The field 'simulate' can't be read"):
        faults.wish("m", "", body, None, None)


def test_a_mark_with_broken_json_is_refused() -> None:
    with pytest.raises(BadFault, match="JSON that can't be read"):
        faults.wish("m", "[[simulate {]]", None, None, None)


def test_a_mark_is_no_part_of_the_text() -> None:
    assert faults.without_mark("a [[simulate ok]] b [[simulate cut:1]]") == "a  b"


PATHS = {
    "/v1/chat/completions": (None, "/v1/chat/completions"),
    "/fault/cut:3/v1/messages": ("cut:3", "/v1/messages"),
    "/fault/slow-head:1+status:500%2Cok/v1/models": ("slow-head:1+status:500,ok", "/v1/models"),
    "/fault/": (None, "/fault/"),
}


@pytest.mark.parametrize("path", PATHS)
def test_a_path_may_begin_with_a_fault(path: str) -> None:
    assert PATHS[path] == faults.split_path(path)
