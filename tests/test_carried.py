"""What a policy that denies inputs must see in a request: more rather than less."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from test_media import HEADS, JSON, encoded
from zurelay import media
from zurelay.carried import Carried, carried
from zurelay.model import Input

IMAGE, PDF, AUDIO, VIDEO = Input.IMAGE, Input.PDF, Input.AUDIO, Input.VIDEO
PNG = "data:image/png;base64," + encoded(HEADS["png"][0])
TEXT = "data:text/plain;base64," + base64.b64encode("é".encode() * 2000).decode()
PICTURE = {"type": "image_url", "image_url": {"url": PNG}}
BLOCK = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": encoded(HEADS["png"][0])}}


def of(body: Any) -> Carried:
    return carried(json.dumps(body).encode())


def of_part(part: Any) -> Carried:
    return of({"messages": [{"role": "user", "content": [part]}]})


DECLARED_OR_SAID = {
    "an image whose address ends otherwise": ({"type": "image_url", "image_url": {"url": "https://x.test/a.pdf"}}, PDF),
    "an image that is said to be text": ({"type": "image_url", "image_url": {"url": "data:text/plain,hi"}}, None),
    "an image with another name": ({"type": "image", "source": {"url": "a", "filename": "a.txt"}}, None),
    "an image that is sound": ({"type": "image_url", "image_url": PNG.replace(PNG[22:], encoded(b"fLaC"))}, AUDIO),
    "an image without anything": ({"type": "input_image"}, None),
    "an image of no type": ({"type": "image", "source": 3}, None),
}


@pytest.mark.parametrize(("part", "more"), [pytest.param(*row, id=name) for name, row in DECLARED_OR_SAID.items()])
def test_what_is_declared_and_what_is_said_both_count(part: Any, more: Input | None) -> None:
    assert Carried(frozenset({IMAGE, more or IMAGE})) == of_part(part)


UNKNOWN = {
    "image_file": {"type": "image_file", "image_file": {"file_id": "f"}},
    "capitals": {"type": "IMAGE_URL", "image_url": {"url": "https://x.test/a"}},
    "no type": {"image_url": {"url": "https://x.test/a"}},
    "no type, text": {"text": "hello"},
    "a type that is none": {"type": ["image_url"], "image_url": "a"},
    "a type of null": {"type": None, "x": 1},
    "a space": {"type": "image_url ", "image_url": "a"},
    "an upload": {"type": "container_upload", "file_id": "f"},
    "a list": [PICTURE],
    "a file by its id": {"type": "file", "file": {"file_id": "f"}},
    "a file by its id, with a name": {"type": "file", "file": {"file_id": "f", "filename": "a.txt"}},
    "a file at an address": {"type": "input_file", "input_file": {"file_url": "https://x.test/a"}},
    "a file of a few bytes": {"type": "file", "file": {"file_data": "0000"}},
    "a file without data": {"type": "file"},
    "a file of unknown bytes": {"type": "file", "file": {"file_data": "data:text/plain;base64,AAECAwQF"}},
    "a document without a source": {"type": "document"},
    "a document of an unknown source": {"type": "document", "source": {"type": "odd"}},
}


@pytest.mark.parametrize("part", UNKNOWN.values(), ids=UNKNOWN)
def test_what_cannot_be_told_may_be_anything(part: Any) -> None:
    assert of_part(part).doubt
    if isinstance(part, dict):
        assert of({"messages": [{"role": "user", "content": part}]}).doubt


def test_a_part_of_an_unknown_type_is_named() -> None:
    assert "a part of the type image_file" == of_part(UNKNOWN["image_file"]).doubt
    assert len(of_part({"type": "x" * 9999}).doubt) < 100


TWICE = {
    "a type": '{"type":"image_url","image_url":{"url":"a"},"type":"text","text":"hi"}',
    "the media": '{"type":"text","text":"hi","image_url":{"url":"a"},"image_url":null}',
    "a type in other letters": '{"type":"text","text":"hi","Type":"image_url"}',
    "the source of a document": '{"type":"document","source":{"type":"url","type":"text","url":"a","data":"a"}}',
}


@pytest.mark.parametrize("part", TWICE.values(), ids=TWICE)
def test_a_field_that_stands_twice_may_be_anything(part: str) -> None:
    assert carried(b'{"messages":[{"content":[%s]}]}' % part.encode()).doubt
    assert carried(b'{"messages":[{"content":[],"content":[%s]}]}' % part.encode()).doubt


PLACES: dict[str, dict[str, Any]] = {
    "a user's message": {"messages": [{"role": "user", "content": [PICTURE]}]},
    "a content that is one part": {"messages": [{"role": "user", "content": PICTURE}]},
    "a tool's message": {"messages": [{"role": "tool", "content": [PICTURE]}]},
    "system": {"system": [{"type": "text", "text": "a"}, BLOCK], "messages": []},
    "a tool's result": {"messages": [{"content": [{"type": "tool_result", "content": [BLOCK]}]}]},
    "results within results": {
        "messages": [
            {"content": [{"type": "tool_result", "content": [{"type": "mcp_tool_result", "content": [BLOCK]}]}]}
        ]
    },
    "a document's parts": {
        "messages": [{"content": [{"type": "document", "source": {"type": "content", "content": [BLOCK]}}]}]
    },
    "a search's result": {"messages": [{"content": [{"type": "search_result", "source": "a", "content": [BLOCK]}]}]},
    "a text's own field": {"messages": [{"content": [{"type": "text", "text": "a", "image_url": {"url": "a"}}]}]},
    "a text's other field": {"messages": [{"content": [{"type": "text", "text": "a", "x": [{"y": PNG}]}]}]},
    "a message's field": {"messages": [{"role": "assistant", "content": "a", "images": ["iVBORw0KGgo="]}]},
    "the request's field": {"messages": [], "images": ["iVBORw0KGgo="]},
    "a field of the request's field": {"messages": [], "extra_body": {"inputImage": "a", "image": {"x": "a"}}},
    "a text's own field in other letters": {
        "messages": [{"content": [{"type": "text", "text": "a", "IMAGE_URL": "a"}]}]
    },
    "a field in other letters": {"messages": [], "Images": ["a"]},
    "messages in other letters": {"MESSAGES": [{"content": [PICTURE]}]},
    "a prediction": {"messages": [], "prediction": {"type": "content", "content": [PICTURE]}},
    "messages that are one": {"messages": {"role": "user", "content": [PICTURE]}},
}


@pytest.mark.parametrize("body", PLACES.values(), ids=PLACES)
def test_media_is_seen_wherever_it_stands(body: dict[str, Any]) -> None:
    assert {IMAGE} == of(body).kinds


def test_sound_that_an_answer_refers_to_is_sound() -> None:
    assert Carried(frozenset({AUDIO})) == of({"messages": [{"role": "assistant", "audio": {"id": "audio_1"}}]})


def test_nesting_beyond_the_bound_may_be_anything() -> None:
    part: dict[str, Any] = PICTURE
    for _ in range(200):
        part = {"type": "tool_result", "content": [part]}
    assert of_part(part).doubt
    assert carried(b'{"x":' + b'{"a":' * 400 + b"1" + b"}" * 401).doubt
    assert carried(b'{"x":' + b"[" * 5000 + b"]" * 5000 + b"}").doubt


FILES = {
    **{name: ({"file_data": f"data:;base64,{encoded(head)}"}, kind) for name, (head, kind) in HEADS.items()},
    "a name beside other bytes": (
        {"filename": "a.png", "file_data": f"data:application/pdf;base64,{encoded(b'%PDF-1.7')}"},
        PDF,
    ),
    "a picture under a doctype": ({"file_data": "data:,<!DOCTYPE svg><svg>"}, IMAGE),
}


@pytest.mark.parametrize(("holder", "kind"), FILES.values(), ids=FILES)
def test_a_file_is_what_its_bytes_say(holder: dict[str, Any], kind: Input) -> None:
    found = of_part({"type": "file", "file": holder})
    assert kind in found.kinds
    assert not found.doubt


def test_a_file_in_a_container_may_be_sound_or_pictures() -> None:
    assert {AUDIO, VIDEO} == of_part({"type": "file", "file": {"file_data": encoded(HEADS["mp4"][0])}}).kinds


ORDINARY = {
    "text": {"messages": [{"role": "user", "content": "see https://x.test/a.png, or data:image/png;base64,AAAA"}]},
    "text parts": {"messages": [{"content": [{"type": "text", "text": "data:image/png;base64,AAAA"}, "more"]}]},
    "no content": {
        "messages": [{"role": "assistant", "content": None, "tool_calls": [{"id": "a", "type": "function"}]}]
    },
    "a text file": {
        "messages": [
            {
                "content": [
                    {"type": "file", "file": {"filename": "a.csv", "file_data": "data:text/csv;base64,YSxiCg=="}},
                    {"type": "file", "file": {"file_data": TEXT}},
                ]
            }
        ]
    },
    "documents of text": {
        "messages": [
            {
                "content": [
                    {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "//s"}},
                    {
                        "type": "document",
                        "source": {"type": "content", "content": "text"},
                        "title": "a",
                        "context": "b",
                    },
                ]
            }
        ]
    },
    "tools, and what they did": {
        "tools": [{"name": "draw", "input_schema": {"properties": {"image_url": {"type": "image_url"}}}}],
        "messages": [
            {"content": [{"type": "tool_use", "id": "a", "name": "draw", "input": {"image": PNG, "type": "image"}}]},
            {"content": [{"type": "tool_result", "tool_use_id": "a", "content": "drawn", "is_error": False}]},
            {"content": [{"type": "thinking", "thinking": "h", "signature": "data:image/png;base64,"}]},
            {"content": [{"type": "redacted_thinking", "data": "iVBORw0KGgo="}]},
            {"content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}, "citations": []}]},
        ],
    },
    "an answer that is to sound": {"messages": [], "modalities": ["text", "audio"], "audio": {"voice": "a"}},
    "other fields": {
        "messages": [],
        "temperature": 1,
        "metadata": {"image": "a"},
        "user": "u",
        "profile": {"filename": "a", "x": [1]},
    },
    "media that is null": {"messages": [{"role": "assistant", "content": "a", "audio": None, "images": []}]},
}


@pytest.mark.parametrize("body", ORDINARY.values(), ids=ORDINARY)
def test_text_is_text(body: dict[str, Any]) -> None:
    assert Carried() == of(body)


@pytest.mark.parametrize("name", sorted(set(media.PARTS) - {"file", "input_file", "document"}))
@given(holder=JSON)
@settings(max_examples=20, deadline=None)
def test_no_holder_hides_what_a_part_declares(name: str, holder: Any) -> None:
    key, kind = media.PARTS[name]
    assert kind in of_part({"type": name, key: holder}).kinds


@given(JSON)
@settings(max_examples=60, deadline=None)
def test_what_selection_sees_a_policy_sees_too(value: Any) -> None:
    for body in (value, {"messages": value}, {"messages": [{"content": value}]}, {"messages": [{"content": [value]}]}):
        found = of(body)
        assert found.doubt or media.found(body) <= found.kinds


@given(st.sampled_from(sorted(media.PARTS)), st.text(max_size=30), st.text(max_size=12))
@settings(max_examples=60, deadline=None)
def test_no_address_or_name_makes_media_vanish(name: str, address: str, called: str) -> None:
    key, _ = media.PARTS[name]
    part = {"type": name, key: {"type": "url", "url": address, "filename": called, "file_data": address}}
    found = of_part(part)
    assert found.doubt or found.kinds >= media.found({"messages": [{"content": [part]}]})
