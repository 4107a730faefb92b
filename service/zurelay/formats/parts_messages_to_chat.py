"""Messages' content blocks as chat's parts: texts, images as data or https URLs, PDFs as files."""

from __future__ import annotations

from typing import Any

from zurelay.formats import attachments
from zurelay.formats.blocks import Base64
from zurelay.formats.messages_requests import SOURCE, TEXT, Block, Source, blocks_of, inner

_GAP = "\n\n"
_FILE_NAME = "document.pdf"  # OpenAI wants a name for every file

Part = dict[str, Any]


def translate(block: Block, place: str) -> list[Part] | None:
    """Give the parts for a block; None for a type that chat has no counterpart of."""
    match block.type:
        case "text":
            return _text(block.text)
        case "image":
            return [_image(inner(block.source, SOURCE, f"{place}.source"), f"{place}.source")]
        case "document":
            return _document(block, inner(block.source, SOURCE, f"{place}.source"), place)
        case "search_result":
            content = [part["text"] for part in _texts(blocks_of(block.content, f"{place}.content"))]
            return _text(_GAP.join(filter(None, (block.title, inner(block.source, TEXT, f"{place}.source"), *content))))
    return None


def content(parts: list[Part]) -> str | list[Part]:
    """Give a message's content: one string if all is text, which every provider takes, else the parts."""
    if all(part["type"] == "text" for part in parts):
        return _GAP.join(part["text"] for part in parts)
    return parts


def _text(text: str | None) -> list[Part]:
    return [{"type": "text", "text": text}] if text else []


def _texts(blocks: list[Block]) -> list[Part]:
    return [part for block in blocks if block.type == "text" for part in _text(block.text)]


def _image(source: Source, place: str) -> Part:
    if source.type == "base64":
        return _image_url(attachments.data_url(Base64(source.media_type, source.data)))
    if source.type == "url":
        return _image_url(source.url)
    raise attachments.unsupported(
        place, f"this model can't fetch an image by {source.type[:40]!r}: send base64 or url."
    )


def _image_url(url: str) -> Part:
    return {"type": "image_url", "image_url": {"url": url}}


def _document(block: Block, source: Source, place: str) -> list[Part]:
    heads = _text(_GAP.join(filter(None, (block.title, block.context))))
    if source.type == "text":
        return [*heads, *_text(source.data)]
    if source.type == "content":
        found = list(heads)
        for index, child in enumerate(blocks_of(source.content, f"{place}.source.content")):
            inside = f"{place}.source.content[{index}]"
            parts = translate(child, inside) if child.type in ("text", "image") else None
            if parts is None:
                raise attachments.unsupported(inside, "a document's content can be texts and images.")
            found += parts
        return found
    if source.type == "base64":
        data = attachments.data_url(Base64(source.media_type or attachments.PDF, source.data))
        file = {"filename": block.title or _FILE_NAME, "file_data": data}
        return [*_text(block.context), {"type": "file", "file": file}]
    raise attachments.unsupported(
        f"{place}.source", f"this model can't fetch a document by {source.type[:40]!r}: send base64."
    )
