"""What a request holds beside text, by part type and by what the data says."""

import base64
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zurelay import media
from zurelay.model import Input

IMAGE, PDF, AUDIO, VIDEO = Input.IMAGE, Input.PDF, Input.AUDIO, Input.VIDEO
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
HEADS: dict[str, tuple[bytes, Input]] = {
    "png": (b"\x89PNG\r\n\x1a\n", IMAGE),
    "jpeg": (b"\xff\xd8\xff\xe0", IMAGE),
    "gif": (b"GIF89a", IMAGE),
    "webp": (b"RIFF\x10\x00\x00\x00WEBPVP8 ", IMAGE),
    "bmp": (b"BM\x36\x00", IMAGE),
    "tiff": (b"II*\x00\x08", IMAGE),
    "heic": (b"\x00\x00\x00\x18ftypheic", IMAGE),
    "svg": (b"  <svg xmlns='x'>", IMAGE),
    "svg with a prolog": (b"<?xml version='1.0'?><svg>", IMAGE),
    "pdf": (b"%PDF-1.7\n", PDF),
    "pdf after junk": (b"junk" * 50 + b"%PDF-1.4", PDF),
    "wav": (b"RIFF\x10\x00\x00\x00WAVEfmt ", AUDIO),
    "mp3 with a tag": (b"ID3\x04", AUDIO),
    "mp3": (b"\xff\xfb\x90", AUDIO),
    "mp3 with a checksum": (b"\xff\xfa\x90", AUDIO),
    "mp3 of half the rate": (b"\xff\xe3\x90", AUDIO),
    "aac": (b"\xff\xf1\x50", AUDIO),
    "aac of mpeg 2": (b"\xff\xf9\x50", AUDIO),
    "flac": (b"fLaC\x00", AUDIO),
    "m4a": (b"\x00\x00\x00\x20ftypM4A ", AUDIO),
    "avi": (b"RIFF\x10\x00\x00\x00AVI LIST", VIDEO),
    "mp4": (b"\x00\x00\x00\x20ftypisom", VIDEO),
    "quicktime without ftyp": (b"\x00\x00\x00\x08wide\x00\x00\x00\x00mdat", VIDEO),
    "wmv": (bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c"), VIDEO),
    "ico": (b"\x00\x00\x01\x00\x01\x00", IMAGE),
    "webm": (b"\x1aE\xdf\xa3\x01", VIDEO),
}


def encoded(data: bytes) -> str:
    return base64.b64encode(data + b"\0" * 30).decode()


def found(*parts: Any) -> frozenset[Input]:
    return media.found({"messages": [{"role": "user", "content": list(parts)}]})


def image(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


@pytest.mark.parametrize(
    ("name", "part", "kind"),
    [
        ("image_url", image("https://x.test/a"), IMAGE),
        ("image_url as text", {"type": "image_url", "image_url": "https://x.test/a"}, IMAGE),
        ("input_image", {"type": "input_image", "image_url": "https://x.test/a"}, IMAGE),
        ("input_audio", {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}, AUDIO),
        ("file", {"type": "file", "file": {"file_id": "file-1"}}, PDF),
        ("file by name", {"type": "file", "file": {"filename": "a.PDF", "file_id": "f"}}, PDF),
        ("image file by name", {"type": "file", "file": {"filename": "a.png", "file_id": "f"}}, IMAGE),
        ("video_url", {"type": "video_url", "video_url": {"url": "https://x.test/a"}}, VIDEO),
        ("input_video", {"type": "input_video", "input_video": {"data": "AAAA"}}, VIDEO),
        (
            "anthropic image",
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A"}},
            IMAGE,
        ),
        ("anthropic image by address", {"type": "image", "source": {"type": "url", "url": "https://x.test/a"}}, IMAGE),
        ("anthropic image by id", {"type": "image", "source": {"type": "file", "file_id": "f"}}, IMAGE),
        ("anthropic document", {"type": "document", "source": {"type": "base64", "data": "A"}}, PDF),
        (
            "anthropic document by address",
            {"type": "document", "source": {"type": "url", "url": "https://x.test/a"}},
            PDF,
        ),
        (
            "sound in a webm container",
            {"type": "input_audio", "input_audio": {"data": "GkXfowEA", "format": "webm"}},
            AUDIO,
        ),
        (
            "sound declared as mp4",
            {"type": "input_audio", "input_audio": {"data": "data:audio/mp4;base64,AAAA"}},
            AUDIO,
        ),
    ],
)
def test_a_part_s_type_says_what_it_is(name: str, part: dict[str, Any], kind: Input) -> None:
    assert found(part) == {kind}, name


@pytest.mark.parametrize("name", HEADS)
def test_magic_bytes_beat_the_part_s_and_the_declared_type(name: str) -> None:
    head, kind = HEADS[name]
    wrong = "image/png" if kind is not IMAGE else "application/pdf"

    assert found(image(f"data:{wrong};base64,{encoded(head)}")) == {kind}
    assert found({"type": "file", "file": {"file_data": f"data:;base64,{encoded(head)}"}}) == {kind}
    assert found({"type": "document", "source": {"type": "base64", "data": encoded(head)}}) == {kind}


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("https://x.test/a.pdf", PDF),
        ("https://x.test/a.PDF?sig=1.png#page", PDF),
        ("https://x.test/a.mp3", AUDIO),
        ("https://x.test/a.mov", VIDEO),
        ("https://x.test/a.jpeg", IMAGE),
        ("https://x.test/v1.2/download", IMAGE),
        (" \nhttps://x.test/a.pdf", PDF),
        ("data:application/pdf;base64,", PDF),
        (" data:application/pdf;base64,", PDF),
        ("data:audio/wav,", AUDIO),
        ("data:image/svg+xml;utf8,<svg/>", IMAGE),
        ("data:image/png", IMAGE),
        ("", IMAGE),
    ],
)
def test_an_address_s_ending_and_a_declared_type_count(url: str, kind: Input) -> None:
    assert found(image(url)) == {kind}


@pytest.mark.parametrize(
    "part",
    [
        {"type": "text", "text": "see https://x.test/a.png"},
        {"type": "document", "source": {"type": "text", "data": "plain"}},
        {"type": "file", "file": {"filename": "notes.txt", "file_data": "data:text/plain;base64,aGk="}},
        {"type": "unknown", "url": "https://x.test/a.png"},
        {"image_url": {"url": "https://x.test/a.png"}},
        {"type": ["image_url"]},
        "image_url",
        None,
    ],
)
def test_text_and_what_isn_t_known_is_no_media(part: Any) -> None:
    assert found(part) == frozenset()


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": [image("a")]},
        {"role": "tool", "content": [image("a")]},
        {"role": "user", "content": [{"type": "tool_result", "content": [image("a")]}]},
        {"role": "user", "content": [{"type": "document", "source": {"type": "content", "content": [image("a")]}}]},
    ],
)
def test_media_is_found_wherever_a_part_can_stand(message: dict[str, Any]) -> None:
    assert media.found({"messages": [message]}) == {IMAGE}


def test_all_kinds_of_a_request_come_together() -> None:
    assert found(image("a"), {"type": "file", "file": {}}, {"type": "input_audio", "input_audio": {}}) == {
        IMAGE,
        PDF,
        AUDIO,
    }


def test_nesting_is_followed_to_a_bound() -> None:
    part: dict[str, Any] = image("a")
    for _ in range(500):
        part = {"type": "tool_result", "content": [part]}

    assert found(part) == frozenset()


@settings(max_examples=60)
@given(JSON)
def test_any_json_has_an_answer(value: Any) -> None:
    bodies = [value, {"messages": value}, {"messages": [{"content": value}]}]
    bodies += [{"messages": [{"content": [{"type": name, key: value}]}]} for name, (key, _) in media.PARTS.items()]

    assert all(isinstance(media.found(body), frozenset) for body in bodies)


@settings(max_examples=40)
@given(st.text(max_size=30))
def test_any_address_is_read_without_error(text: str) -> None:
    assert len(found(image(text))) <= 1
    assert len(found(image("data:" + text))) <= 1
    assert len(found({"type": "input_audio", "input_audio": {"data": text, "format": text}})) <= 1


@pytest.mark.parametrize(
    ("part", "payload"),
    [
        (image("https://x.test/a"), "https://x.test/a"),
        ({"type": "image_url", "image_url": "u"}, "u"),
        ({"type": "input_audio", "input_audio": {"data": "AAAA"}}, "AAAA"),
        ({"type": "file", "file": {"file_id": "f"}}, ""),
        ({"type": "file", "file": 3}, ""),
    ],
)
def test_the_payload_is_the_data_or_the_address(part: dict[str, Any], payload: str) -> None:
    assert media.payload(part) == payload
