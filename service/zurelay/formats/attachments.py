"""Images and files inside messages: data URLs in chat, sources in Messages. Whoever asks names the place for errors."""

from __future__ import annotations

import base64
import binascii
import re

from zurelay.errors import InvalidRequest
from zurelay.formats.blocks import Base64, Document, Image, PlainText, Url

IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
PDF = "application/pdf"
PLAIN = "text/plain"

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?((?:;[^;,]*)*?)(;base64)?,", re.IGNORECASE | re.ASCII)
_ALIASES = {"image/jpg": "image/jpeg", "application/x-pdf": PDF}
_PDF_START = "JVBERi0"  # base64 of "%PDF-"
_LONGEST_HEAD = 200  # characters of a data URL before its comma


def unsupported(place: str, message: str) -> InvalidRequest:
    """Build the refusal of content that a provider can't read."""
    return InvalidRequest(f"`{place}`: {message}", code="unsupported_content", param=place)


def split_data_url(url: str, place: str) -> tuple[str, str]:
    """Take a base64 data URL apart into its media type and its data."""
    found = _DATA_URL.match(url[:_LONGEST_HEAD])
    if found is None or not found[3]:
        raise unsupported(place, "send a data URL with a media type and base64: data:image/png;base64,...")
    media_type = (found[1] or PLAIN).lower()
    return _ALIASES.get(media_type, media_type), url[found.end() :]


def image(url: str, place: str, cache_control: object = None) -> Image:
    """Turn the url of an image_url part into an image block."""
    scheme = url[:8].lower()
    if scheme == "https://":
        return Image(Url(url), cache_control)
    if not scheme.startswith("data:"):
        raise unsupported(place, "this model's provider fetches images by https only: send an https or data URL.")
    media_type, data = split_data_url(url, place)
    if media_type not in IMAGE_TYPES:
        raise unsupported(
            place, f"{media_type} is no image that this model reads: send one of {', '.join(IMAGE_TYPES)}."
        )
    return Image(Base64(media_type, data), cache_control)


def document(data: str, title: str | None, place: str, cache_control: object = None) -> Document:
    """Turn the file_data of a file part into a document block: a PDF, or plain text."""
    if data.startswith(_PDF_START):
        return Document(Base64(PDF, data), title or None, cache_control)
    media_type, payload = split_data_url(data, place)
    if media_type == PDF:
        return Document(Base64(PDF, payload), title or None, cache_control)
    if media_type != PLAIN:
        raise unsupported(place, f"{media_type} can't be read by this model: send {PDF} or {PLAIN}.")
    try:
        text = base64.b64decode(payload, validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise unsupported(place, "the data isn't UTF-8 text in base64.") from error
    return Document(PlainText(PLAIN, text), title or None, cache_control)


def data_url(source: Base64) -> str:
    """Write a source's bytes as a data URL."""
    return f"data:{source.media_type};base64,{source.data}"
