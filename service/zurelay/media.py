"""What a request holds beside text: by part type, and by what the data itself says it is.

The data decides where it can be known (magic bytes, then the declared type, then the name's ending); the part's
type decides for the rest. So a PDF sent as `image_url` counts as a PDF, and a file known by its id alone as what
its part says.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote_to_bytes

from zurelay.model import Input

# Part types of OpenAI chat, OpenAI responses, vLLM and Anthropic messages, and the field that holds the data.
PARTS: dict[str, tuple[str, Input]] = {
    "image_url": ("image_url", Input.IMAGE),
    "input_image": ("image_url", Input.IMAGE),
    "image": ("source", Input.IMAGE),
    "input_audio": ("input_audio", Input.AUDIO),
    "audio_url": ("audio_url", Input.AUDIO),
    "audio": ("source", Input.AUDIO),
    "video_url": ("video_url", Input.VIDEO),
    "input_video": ("input_video", Input.VIDEO),
    "video": ("source", Input.VIDEO),
    "file": ("file", Input.PDF),
    "input_file": ("file", Input.PDF),
    "document": ("source", Input.PDF),
}
_DATA_KEYS = ("url", "data", "file_data", "file_url", "image_url", "video_url", "audio_url")
_TYPE_KEYS = ("media_type", "mime_type", "format")

_HEADS: tuple[tuple[bytes, Input], ...] = (
    *((magic, Input.IMAGE) for magic in (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"BM", b"II*\x00", b"MM\x00*", b"<svg")),
    (b"\x00\x00\x01\x00", Input.IMAGE),
    (b"%PDF-", Input.PDF),
    *((magic, Input.AUDIO) for magic in (b"ID3", b"fLaC", b"OggS", b"#!AMR", b"FORM")),
    # Frames of MPEG audio and of AAC begin with eleven ones; then version, layer and whether a checksum follows.
    *((b"\xff" + bytes([second]), Input.AUDIO) for second in (0xFB, 0xFA, 0xF3, 0xF2, 0xE3, 0xE2, 0xF1, 0xF9)),
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", Input.VIDEO),
    (b"\x1aE\xdf\xa3", Input.VIDEO),
    (b"FLV\x01", Input.VIDEO),
    (b"\x00\x00\x01\xba", Input.VIDEO),
    (b"\x00\x00\x01\xb3", Input.VIDEO),
)
_RIFF = {b"WEBP": Input.IMAGE, b"WAVE": Input.AUDIO, b"AVI ": Input.VIDEO}
_FTYP_IMAGES = frozenset({b"heic", b"heix", b"hevc", b"mif1", b"msf1", b"avif", b"avis"})
_FTYP_AUDIO = frozenset({b"M4A ", b"M4B ", b"F4A "})
# Containers that hold sound alone or pictures too: the part's type says which.
_EITHER = frozenset({Input.AUDIO, Input.VIDEO})
_CONTAINER_HEADS = (b"OggS", b"\x1aE\xdf\xa3", b"\x30\x26\xb2\x75\x8e\x66\xcf\x11")
_ATOMS = frozenset({b"moov", b"mdat", b"wide"})  # what a QuickTime file without ftyp begins with
_CONTAINER_ENDINGS = frozenset({"mp4", "webm", "ogg", "3gp", "mpeg"})

_ENDINGS: dict[str, Input] = {
    **dict.fromkeys(
        ("png", "jpg", "jpeg", "jfif", "gif", "webp", "bmp", "tif", "tiff", "svg", "heic", "heif", "avif", "ico"),
        Input.IMAGE,
    ),
    **dict.fromkeys(
        ("mp3", "wav", "m4a", "aac", "ogg", "oga", "opus", "flac", "wma", "aiff", "amr", "pcm16", "pcm"), Input.AUDIO
    ),
    **dict.fromkeys(
        ("mp4", "mov", "avi", "mkv", "webm", "mpeg", "mpg", "wmv", "flv", "m4v", "3gp", "ogv"), Input.VIDEO
    ),
    "pdf": Input.PDF,
    **dict.fromkeys(
        ("txt", "md", "csv", "json", "html", "htm", "xml", "yaml", "yml", "py", "js", "ts", "log", "plain"), Input.TEXT
    ),
}
_FAMILIES = {kind.value: kind for kind in Input if kind is not Input.PDF}
# Base64 of 1,024 bytes: a PDF's header may stand anywhere in them (ISO 32000-1, annex H).
_SNIFFED_CHARS = 1368
_ENDING = re.compile(r"\.([A-Za-z0-9]{2,5})$")
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/]")
MAX_DEPTH = 8


def found(body: Any) -> frozenset[Input]:
    """Every kind of media in a decoded request, text left out. What has the wrong type counts as absent."""
    kinds: set[Input] = set()
    messages = body.get("messages") if isinstance(body, Mapping) else None
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict):
            kinds.update(kind for _, kind in parts(message.get("content")))
    return frozenset(kinds)


def parts(content: Any, depth: int = 0) -> Iterator[tuple[dict[str, Any], Input]]:
    """Every media part in a message's content and its kind; tool results and documents are looked into."""
    if not isinstance(content, list) or depth > MAX_DEPTH:
        return
    for part in content:
        if not isinstance(part, dict):
            continue
        kind = of_part(part)
        if kind is not None:
            yield part, kind
        source = part.get("source")
        for inner in (part.get("content"), source.get("content") if isinstance(source, dict) else None):
            yield from parts(inner, depth + 1)


def of_part(part: Mapping[str, Any]) -> Input | None:
    """The kind of media that one part holds, None for text and for what isn't known."""
    name = part.get("type")
    known = PARTS.get(name) if isinstance(name, str) else None
    if known is None:
        return None
    key, by_type = known
    holder = part.get(key)
    if isinstance(holder, dict) and holder.get("type") in ("text", "content"):
        return None
    sniffed = _sniff(holder if holder is not None else part, by_type)
    kind = by_type if sniffed is None else sniffed
    return None if kind is Input.TEXT else kind


def payload(part: Mapping[str, Any]) -> str:
    """The data or address that a part carries, empty when it has neither."""
    name = part.get("type")
    known = PARTS.get(name) if isinstance(name, str) else None
    holder = part.get(known[0], part) if known else part
    if isinstance(holder, str):
        return holder
    return _first_text(holder, _DATA_KEYS) if isinstance(holder, dict) else ""


def _sniff(holder: Any, by_type: Input) -> Input | None:
    if isinstance(holder, str):
        return _of_address(holder, by_type)
    if not isinstance(holder, dict):
        return None
    data = _first_text(holder, _DATA_KEYS)
    kind = _of_address(data, by_type)
    for declared in (_first_text(holder, _TYPE_KEYS), _first_text(holder, ("filename",))):
        kind = kind or _of_name(declared, by_type)
    return kind


def every(holder: Any, by_type: Input) -> frozenset[Input]:
    """Every kind that anything about the data says: its bytes, the declared types, the name, the address' ending."""
    if isinstance(holder, str):
        holder = {"url": holder}
    if not isinstance(holder, Mapping):
        return frozenset()
    kinds = set()
    for key, value in holder.items():
        if not isinstance(value, str) or not value:
            continue
        if key in _DATA_KEYS:
            kinds |= {of_bytes(first_bytes(value), by_type), _of_name(_declared(value), by_type)}
        elif key in _TYPE_KEYS or key == "filename":
            kinds.add(_of_name(value, by_type))
    return frozenset(kind for kind in kinds if kind is not None)


def _declared(text: str) -> str:
    """Give what an address says of its data: a media type, or the path's ending."""
    text = text.lstrip()
    if text[:5].lower() == "data:":
        return text[5:300].partition(",")[0].partition(";")[0]
    return text[:4096].partition("?")[0].partition("#")[0].rstrip("/") if "://" in text[:12] else ""


def first_bytes(text: str) -> bytes:
    """Give the beginning of the data that a text carries, as a data: URL or in base64; nothing of an address."""
    text = text.lstrip()
    if text[:5].lower() == "data:":
        head, _, data = text[5 : 5 + 2 * _SNIFFED_CHARS].partition(",")
        return _decoded(data) if head.lower().endswith("base64") else unquote_to_bytes(data)[:1024]
    return b"" if "://" in text[:12] else _decoded(text)


def _first_text(holder: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    for key in keys:
        value = holder.get(key)
        if isinstance(value, str) and value:
            return value
    return ""


def _of_address(text: str, by_type: Input) -> Input | None:
    text = text.lstrip()  # as whoever reads a URL does
    if text[:5].lower() == "data:":
        head, comma, data = text[5 : 5 + 2 * _SNIFFED_CHARS].partition(",")
        if not comma:
            return _of_name(head.partition(";")[0], by_type)
        encoded = head.lower().endswith("base64")
        first = _decoded(data) if encoded else unquote_to_bytes(data)[:1024]
        return of_bytes(first, by_type) or _of_name(head.partition(";")[0], by_type)
    if "://" in text[:12]:
        path = text[:4096].partition("?")[0].partition("#")[0].rstrip("/")
        return _of_name(path, by_type)
    return of_bytes(_decoded(text), by_type)


def _decoded(data: str) -> bytes:
    """The first bytes of base64 text, in either alphabet, up to the first character that is neither."""
    head = "".join(data[:_SNIFFED_CHARS].split()).replace("-", "+").replace("_", "/")
    cut = _NOT_BASE64.search(head)
    if cut:
        head = head[: cut.start()]
    try:
        return base64.b64decode(head[: len(head) // 4 * 4])
    except binascii.Error:
        return b""


def of_bytes(head: bytes, by_type: Input) -> Input | None:
    """Give the kind that data begins as; `by_type` says which of two, where a container may hold either."""
    if head[:4] == b"RIFF":
        return _RIFF.get(head[8:12])
    if head[4:8] == b"ftyp":
        return _of_brand(head[8:12], by_type)
    if head[4:8] in _ATOMS:
        return by_type if by_type in _EITHER else Input.VIDEO
    stripped = head.lstrip()
    for magic, kind in _HEADS:
        if stripped.startswith(magic):
            return by_type if magic in _CONTAINER_HEADS and by_type in _EITHER else kind
    if b"%PDF-" in head[:1024]:
        return Input.PDF
    return Input.IMAGE if stripped.startswith(b"<?xml") and b"<svg" in stripped else None


def _of_brand(brand: bytes, by_type: Input) -> Input:
    if brand in _FTYP_IMAGES:
        return Input.IMAGE
    return Input.AUDIO if brand in _FTYP_AUDIO or by_type is Input.AUDIO else Input.VIDEO


def _of_name(name: str, by_type: Input) -> Input | None:
    """The kind that a media type ("image/png"), a format ("wav") or a file's name says."""
    lowered = name[-256:].lower()
    ending = _ENDING.search(lowered)
    word = ending[1] if ending else lowered.rpartition("/")[2]
    if word in _CONTAINER_ENDINGS and by_type in _EITHER:
        return by_type
    family = lowered.partition("/")[0]
    if family in _FAMILIES and not (ending and word in _ENDINGS):
        return _FAMILIES[family]
    return _ENDINGS.get(word)
