"""Frames: where they may stand, how large they must be, padding."""

from __future__ import annotations

import pytest

from zurelay.http2.frames import Code, ConnectionFault, Flag, Kind, StreamFault, check, frame, unpadded


def test_a_frame_is_its_length_type_flags_stream_and_payload() -> None:
    assert b"\x00\x00\x03\x00\x01\x00\x00\x00\x05abc" == frame(Kind.DATA, Flag.END_STREAM, 5, b"abc")


@pytest.mark.parametrize(
    ("flags", "payload", "rest"),
    [
        (0, b"abc", b"abc"),
        (Flag.PADDED, b"\x00abc", b"abc"),
        (Flag.PADDED, b"\x02abc\0\0", b"abc"),
        (Flag.PADDED, b"\x03\0\0\0", b""),
        (Flag.PRIORITY, b"\0\0\0\0\0abc", b"abc"),
        (Flag.PADDED | Flag.PRIORITY, b"\x01\0\0\0\0\0abc\0", b"abc"),
    ],
)
def test_padding_and_priority_come_off(flags: int, payload: bytes, rest: bytes) -> None:
    assert rest == unpadded(payload, flags)


@pytest.mark.parametrize(
    ("flags", "payload", "code"),
    [
        (Flag.PADDED, b"", Code.FRAME_SIZE),
        (Flag.PADDED, b"\x04abc", Code.PROTOCOL),
        (Flag.PRIORITY, b"\0\0\0\0", Code.PROTOCOL),
    ],
)
def test_more_padding_than_frame_is_a_fault(flags: int, payload: bytes, code: int) -> None:
    with pytest.raises(ConnectionFault) as fault:
        unpadded(payload, flags)
    assert code == fault.value.code


@pytest.mark.parametrize(
    ("kind", "stream", "size", "code"),
    [
        (Kind.DATA, 0, 3, Code.PROTOCOL),
        (Kind.HEADERS, 0, 3, Code.PROTOCOL),
        (Kind.PRIORITY, 0, 5, Code.PROTOCOL),
        (Kind.RESET, 0, 4, Code.PROTOCOL),
        (Kind.CONTINUATION, 0, 3, Code.PROTOCOL),
        (Kind.SETTINGS, 1, 0, Code.PROTOCOL),
        (Kind.PING, 1, 8, Code.PROTOCOL),
        (Kind.GOAWAY, 1, 8, Code.PROTOCOL),
        (Kind.RESET, 1, 3, Code.FRAME_SIZE),
        (Kind.PING, 0, 7, Code.FRAME_SIZE),
        (Kind.UPDATE, 0, 5, Code.FRAME_SIZE),
        (Kind.GOAWAY, 0, 7, Code.FRAME_SIZE),
    ],
)
def test_a_frame_in_a_wrong_place_or_of_a_wrong_size_is_a_fault(kind: int, stream: int, size: int, code: int) -> None:
    with pytest.raises(ConnectionFault) as fault:
        check(kind, stream, size)
    assert code == fault.value.code


@pytest.mark.parametrize(
    ("kind", "stream", "size"),
    [
        (Kind.DATA, 1, 0),
        (Kind.HEADERS, 1, 9),
        (Kind.PRIORITY, 1, 5),
        (Kind.RESET, 1, 4),
        (Kind.SETTINGS, 0, 12),
        (Kind.PING, 0, 8),
        (Kind.GOAWAY, 0, 30),
        (Kind.UPDATE, 0, 4),
        (Kind.UPDATE, 7, 4),
        (200, 0, 3),
        (200, 9, 3),
    ],
)
def test_frames_in_their_places_pass(kind: int, stream: int, size: int) -> None:
    check(kind, stream, size)


def test_a_priority_of_a_wrong_size_is_its_streams_fault_alone() -> None:
    with pytest.raises(StreamFault) as fault:
        check(Kind.PRIORITY, 1, 4)
    assert Code.FRAME_SIZE == fault.value.code
