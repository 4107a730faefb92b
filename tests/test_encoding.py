"""Content codings, whole and in pieces, good and bad."""

from __future__ import annotations

import gzip
import random
import tracemalloc
import zlib
from collections.abc import Callable

import brotli  # type: ignore[import-untyped]  # ships no types
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from zurelay.encoding import ContentDecoder, decode
from zurelay.errors import InvalidRequest, TooLarge, UnsupportedEncoding

Encode = Callable[[bytes], bytes]
MIB = 1 << 20
LIMIT = 4 * MIB


def bare_deflate(data: bytes) -> bytes:
    encoder = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return encoder.compress(data) + encoder.flush()


def encode_brotli(data: bytes) -> bytes:
    encoded: bytes = brotli.compress(data, quality=5)
    return encoded


ENCODERS: dict[str, tuple[str, Encode]] = {
    "gzip": ("gzip", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "bare deflate": ("deflate", bare_deflate),
    "br": ("br", encode_brotli),
    "zstd": ("zstd", zstandard.compress),
}
CODINGS = [pytest.param(*encoder, id=name) for name, encoder in ENCODERS.items()]
BODIES = {
    "nothing": b"",
    "one byte": b"{",
    "JSON": b'{"model": "gpt-6-sol", "messages": [{"role": "user", "content": "\xec\x95\x88\xeb\x85\x95"}]}' * 40,
    "noise": random.Random(7).randbytes(200_000),
    "a full piece": b"x" * 65_536,
    "far over a piece": b"x" * MIB,
}
BODY_CASES = [pytest.param(body, id=name) for name, body in BODIES.items()]


def in_chunks(data: bytes, coding: str, size: int, limit: int = LIMIT) -> bytes:
    decoder = ContentDecoder(coding, limit)
    found = b"".join(decoder.feed(data[start : start + size]) for start in range(0, len(data), size))
    decoder.finish()
    return found


@pytest.mark.parametrize("body", BODY_CASES)
@pytest.mark.parametrize(("coding", "encode"), CODINGS)
def test_a_body_is_decoded_whole(coding: str, encode: Encode, body: bytes) -> None:
    assert body == decode(encode(body), coding, LIMIT)


@pytest.mark.parametrize("size", [1, 7, 4096])
@pytest.mark.parametrize("body", BODY_CASES)
@pytest.mark.parametrize(("coding", "encode"), CODINGS)
def test_a_body_is_decoded_in_chunks(coding: str, encode: Encode, body: bytes, size: int) -> None:
    assert body == in_chunks(encode(body), coding, size)


@given(st.binary(max_size=300), st.integers(1, 50), st.sampled_from(sorted(ENCODERS)))
def test_what_was_encoded_is_decoded_for_any_chunking(body: bytes, size: int, name: str) -> None:
    coding, encode = ENCODERS[name]

    assert body == in_chunks(encode(body), coding, size)


@pytest.mark.parametrize("size", [1, 50_000])
@pytest.mark.parametrize("coding", ["identity", "", " Identity "])
def test_identity_passes_all_bytes(coding: str, size: int) -> None:
    assert BODIES["noise"] == in_chunks(BODIES["noise"], coding, size)


@pytest.mark.parametrize("coding", ["gzip", "GZIP", " gzip\t", "x-gzip", "X-GZip"])
def test_codings_are_known_in_any_case_and_with_white_space(coding: str) -> None:
    assert decode(gzip.compress(b"{}"), coding, LIMIT) == b"{}"


@pytest.mark.parametrize("size", [1, 10_000])
@pytest.mark.parametrize(
    ("coding", "encode"),
    [
        pytest.param("gzip", gzip.compress, id="gzip members"),
        pytest.param("zstd", zstandard.compress, id="zstd frames"),
    ],
)
def test_several_in_a_row_are_one_body(coding: str, encode: Encode, size: int) -> None:
    data = encode(b"one ") + encode(b"") + encode(b"three")

    assert in_chunks(data, coding, size) == b"one three"


def test_a_zstd_frame_to_skip_is_skipped() -> None:
    skipped = b"\x50\x2a\x4d\x18" + len(b"note").to_bytes(4, "little") + b"note"

    assert decode(skipped + zstandard.compress(b"{}"), "zstd", LIMIT) == b"{}"


@pytest.mark.parametrize("left", [0, 1, 5, -1])
@pytest.mark.parametrize(("coding", "encode"), CODINGS)
def test_cut_data_is_refused(coding: str, encode: Encode, left: int) -> None:
    cut = encode(BODIES["noise"])[:left]

    with pytest.raises(InvalidRequest, match=rf"^The {coding} data of the body is cut short") as caught:
        decode(cut, coding, LIMIT)
    assert caught.value.code == "invalid_request"


@pytest.mark.parametrize(("coding", "encode"), CODINGS)
def test_corrupt_data_is_refused(coding: str, encode: Encode) -> None:
    data = bytearray(encode(BODIES["JSON"]))
    data[: len(data) // 2] = b"\xff" * (len(data) // 2)

    with pytest.raises(InvalidRequest, match=rf"^The body isn't valid {coding} data \(.+\)\.$"):
        decode(bytes(data), coding, LIMIT)


@pytest.mark.parametrize("size", [1, 10_000])
@pytest.mark.parametrize(("coding", "encode"), CODINGS)
def test_more_behind_the_end_is_refused(coding: str, encode: Encode, size: int) -> None:
    with pytest.raises(InvalidRequest, match=f"{coding} data"):
        in_chunks(encode(b"{}") + b"{}", coding, size)


def test_a_wrong_checksum_is_refused() -> None:
    data = gzip.compress(b"{}")

    with pytest.raises(InvalidRequest, match="incorrect data check"):
        decode(data[:-8] + bytes(4) + data[-4:], "gzip", LIMIT)


def test_a_zstd_window_over_the_standard_s_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=24)
    encoder = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    data = encoder.compress(b"x" * MIB) + encoder.flush()

    with pytest.raises(InvalidRequest, match="zstd data"):
        decode(data, "zstd", LIMIT)


@pytest.mark.parametrize("size", [1, 10_000])
@pytest.mark.parametrize(("coding", "encode"), [*CODINGS, pytest.param("identity", bytes, id="identity")])
def test_the_limit_itself_passes_and_a_byte_more_does_not(coding: str, encode: Encode, size: int) -> None:
    data = encode(b"x" * 70_000)

    assert in_chunks(data, coding, size, limit=70_000) == b"x" * 70_000
    with pytest.raises(TooLarge, match="over the limit of 69999 bytes"):
        in_chunks(data, coding, size, limit=69_999)


def bomb(name: str, mebibytes: int) -> bytes:
    """Encode zeros, a MiB at a time."""
    zeros = bytes(MIB)
    if name == "br":
        encoder = brotli.Compressor(quality=1)
        encoded: bytes = b"".join(encoder.process(zeros) for _ in range(mebibytes)) + encoder.finish()
        return encoded
    if name == "zstd":
        writer = zstandard.ZstdCompressor(level=1).compressobj()
        return b"".join(writer.compress(zeros) for _ in range(mebibytes)) + writer.flush()
    deflater = zlib.compressobj(level=1, wbits={"gzip": 31, "deflate": 15, "bare deflate": -15}[name])
    return b"".join(deflater.compress(zeros) for _ in range(mebibytes)) + deflater.flush()


@pytest.mark.parametrize("name", ENCODERS)
def test_a_bomb_is_refused_before_it_takes_much_more_than_the_limit(name: str) -> None:
    data = bomb(name, 256)

    tracemalloc.start()
    with pytest.raises(TooLarge, match=f"over the limit of {LIMIT} bytes"):
        decode(data, ENCODERS[name][0], LIMIT)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < LIMIT + 4 * MIB


def test_blocks_of_one_repeated_byte_are_bounded_too() -> None:
    # A zstd frame of the most expanding blocks: 4 bytes each (type RLE, 128 KiB), never the last (RFC 8878, 3.1.1.2).
    header = b"\x28\xb5\x2f\xfd" + b"\x00\x58"
    block = (131_072 << 3 | 1 << 1).to_bytes(3, "little") + b"x"
    data = header + block * 50_000

    tracemalloc.start()
    with pytest.raises(TooLarge):
        decode(data, "zstd", LIMIT)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < LIMIT + 8 * MIB


@pytest.mark.parametrize("coding", ["compress", "gzip, br", "gzip,gzip", "x-br", "GZIP;q=1", "aws-chunked", "*"])
def test_other_and_several_codings_are_refused_with_what_we_take(coding: str) -> None:
    with pytest.raises(UnsupportedEncoding) as caught:
        decode(b"", coding, LIMIT)

    assert caught.value.message == (
        f"The content-encoding `{coding}` isn't supported; send one of gzip, deflate, br, zstd, or none."
    )
