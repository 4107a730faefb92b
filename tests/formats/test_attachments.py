"""Images and files inside messages."""

from __future__ import annotations

from typing import Any

import pytest

from zurelay.errors import InvalidRequest
from zurelay.formats import attachments
from zurelay.formats.blocks import Base64, Document, Image, PlainText, Url

IMAGES: dict[str, tuple[str, Any]] = {
    "https": ("https://e.com/a", Url("https://e.com/a")),
    "HTTPS": ("HTTPS://e.com/a", Url("HTTPS://e.com/a")),
    "data": ("data:image/png;base64,AAAA", Base64("image/png", "AAAA")),
    "a name that isn't the type's": ("data:image/jpg;base64,AA", Base64("image/jpeg", "AA")),
    "parameters": ("data:image/gif;charset=x;name=y;base64,AA", Base64("image/gif", "AA")),
    "no data": ("data:image/gif;base64,", Base64("image/gif", "")),
}


@pytest.mark.parametrize(("url", "source"), IMAGES.values(), ids=IMAGES)
def test_an_image_s_url_becomes_a_source(url: str, source: Any) -> None:
    assert Image(source, "mark") == attachments.image(url, "here", "mark")


@pytest.mark.parametrize(
    "url",
    [
        "http://e.com/a",
        "ftp://e.com",
        "",
        "a.png",
        "data:image/png,AA",
        "data:application/pdf;base64,AA",
        "data:;base64,AA",
    ],
)
def test_what_is_no_image_for_messages_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^`here`: ") as caught:
        attachments.image(url, "here")

    assert (caught.value.code, caught.value.param) == ("unsupported_content", "here")


FILES: dict[str, tuple[str, Any]] = {
    "a PDF": ("data:application/pdf;base64,JVBE", Base64("application/pdf", "JVBE")),
    "a bare PDF": ("JVBERi0xLjcK", Base64("application/pdf", "JVBERi0xLjcK")),
    "text": ("data:text/plain;base64,T2zDoQ==", PlainText("text/plain", "Olá")),
    "text by default": ("data:;base64,YQ==", PlainText("text/plain", "a")),
}


@pytest.mark.parametrize(("data", "source"), FILES.values(), ids=FILES)
def test_a_file_becomes_a_document(data: str, source: Any) -> None:
    assert Document(source, "t") == attachments.document(data, "t", "here")


@pytest.mark.parametrize(
    "data",
    [
        "data:audio/wav;base64,AA",
        "UklGRg==",
        "data:text/plain;base64,/w==",
        "data:text/plain;base64,é",
        "data:text/plain,a",
    ],
)
def test_what_is_no_document_for_messages_is_refused(data: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^`here`: "):
        attachments.document(data, None, "here")


def test_a_data_url_is_taken_apart_as_it_was_put_together() -> None:
    source = Base64("image/webp", "UklG")

    assert (source.media_type, source.data) == attachments.split_data_url(attachments.data_url(source), "here")
