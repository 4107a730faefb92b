"""What a client sends, through the real Envoy: legal JSON passes as sent, the rest is refused plainly (SPEC 3)."""

from __future__ import annotations

import gzip
import json
import socket
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import brotli  # type: ignore[import-untyped]  # it has no types
import httpx
import pytest
import zstandard

from e2e.harness import Gateway, Provider, ask
from http2 import peer
from zurelay.http2.frames import Flag
from zurelay.http2.reader import PREFACE

CODINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.compress,
}
SIMPLE = json.dumps(ask("solo")).encode()


def post(gateway: Gateway, body: bytes | Iterator[bytes], **headers: str) -> httpx.Response:
    """Send bytes as they are."""
    return httpx.post(gateway.url + "/v1/chat/completions", content=body, headers=headers, timeout=60)


def with_member(member: bytes) -> bytes:
    """The simple request with one more member at its end."""
    return SIMPLE[:-1] + b"," + member + b"}"


def error(response: httpx.Response) -> tuple[int, str, str | None]:
    """The status, code and param of a refusal in OpenAI's shape."""
    body = response.json()
    assert sorted(body) == ["error"]
    assert sorted(body["error"]) == ["code", "message", "param", "type"]
    assert body["error"]["message"]
    return response.status_code, body["error"]["code"], body["error"]["param"]


@pytest.mark.parametrize(
    ("member", "kept"),
    [
        (b'"x":1e400', b'"x":1e400'),
        (b'"x": 0.1000', b'"x": 0.1000'),
        (b'"x":12345678901234567890', b'"x":12345678901234567890'),
        (b'"x":-0', b'"x":-0'),
        (b'"x":"\\u00e9\\/\\ud83d\\ude00"', b'"x":"\\u00e9\\/\\ud83d\\ude00"'),
        (b'"\\u0078" : [1, 2 ,3]', b'"\\u0078" : [1, 2 ,3]'),
        (b'"x":1,"x":2', b'"x":1,"x":2'),
        ('"x":"안녕하세요 ✅ \u2028"'.encode(), '"x":"안녕하세요 ✅ \u2028"'.encode()),
        (b'"x":' + b"[" * 511 + b"]" * 511, b"[" * 511 + b"]" * 511),
    ],
)
def test_what_is_not_ours_reaches_the_provider_to_the_byte(
    gateway: Gateway, provider: Provider, member: bytes, kept: bytes
) -> None:
    assert post(gateway, with_member(member)).status_code == 200
    assert kept in provider.requests[-1].body


def test_the_provider_gets_its_own_model_and_none_of_our_fields(gateway: Gateway, provider: Provider) -> None:
    body = ask("three", models=["spare"], reasoning_effort="max", temperature=0.5)
    assert gateway.chat(body).status_code == 200
    sent = json.loads(provider.requests[-1].body)
    assert sent == {**ask("m1"), "reasoning_effort": "high", "temperature": 0.5}


@pytest.mark.parametrize(
    ("body", "status", "code", "param"),
    [
        (b"", 400, "invalid_json", None),
        (b"   ", 400, "invalid_json", None),
        (b"hello", 400, "invalid_json", None),
        (b"[]", 400, "invalid_request", None),
        (b'"text"', 400, "invalid_request", None),
        (b"null", 400, "invalid_request", None),
        (SIMPLE + b"x", 400, "invalid_json", None),
        (SIMPLE[:-1], 400, "invalid_json", None),
        (b"\xef\xbb\xbf" + SIMPLE, 400, "invalid_json", None),
        (with_member(b'"x":NaN'), 400, "invalid_json", None),
        (with_member(b'"x":-Infinity'), 400, "invalid_json", None),
        (with_member(b'"x":"\xff"'), 400, "invalid_json", None),
        (with_member(b'"x":' + b"[" * 512 + b"]" * 512), 400, "invalid_json", None),
        (with_member(b'"x":' + b"[" * 10_000 + b"]" * 10_000), 400, "invalid_json", None),
        (b"[" * 100_000, 400, "invalid_json", None),
        (with_member(b'"model":"trio"'), 400, "invalid_request", "model"),
        (with_member(b'"mod\\u0065l":"trio"'), 400, "invalid_request", "model"),
        (with_member(b'"stream":true,"stream":false'), 400, "invalid_request", "stream"),
        (with_member(b'"tools":[],"tools":[]'), 400, "invalid_request", "tools"),
        (b'{"messages":[{"role":"user","content":"hi"}]}', 400, "invalid_request", "model"),
        (b'{"model":3,"messages":[{"role":"user","content":"hi"}]}', 400, "invalid_request", "model"),
        (b'{"model":null,"messages":[{"role":"user","content":"hi"}]}', 400, "invalid_request", "model"),
        (b'{"model":"solo"}', 400, "invalid_request", "messages"),
        (b'{"model":"solo","messages":[]}', 400, "invalid_request", "messages"),
        (b'{"model":"solo","messages":"hi"}', 400, "invalid_request", "messages"),
        (with_member(b'"stream":"yes"'), 400, "invalid_request", "stream"),
        (with_member(b'"models":"spare"'), 400, "invalid_request", "models"),
        (with_member(b'"models":[1]'), 400, "invalid_request", "models"),
        (with_member(b'"models":["a","b","c","d","e","f","g","h","i"]'), 400, "invalid_request", "models"),
        (with_member(b'"models":["nope"]'), 404, "model_not_found", "models"),
        (with_member(b'"models":["zurelay-auto"]'), 400, "invalid_request", "models"),
        (with_member(b'"reasoning_effort":3'), 400, "invalid_request", "reasoning_effort"),
        (with_member(b'"reasoning_effort":"High"'), 400, "invalid_reasoning_effort", "reasoning_effort"),
        (with_member(b'"stream":true,"stream_options":3'), 400, "invalid_request", "stream_options"),
        (with_member(b'"max_tokens":"5","models":["spare"]'), 400, "invalid_request", "max_tokens"),
        (b'{"model":"sollo","messages":[{"role":"user","content":"hi"}]}', 404, "model_not_found", "model"),
    ],
)
def test_a_body_that_is_wrong_is_refused_and_says_where(
    gateway: Gateway, provider: Provider, body: bytes, status: int, code: str, param: str | None
) -> None:
    assert error(post(gateway, body)) == (status, code, param)
    assert provider.requests == []


def test_an_unknown_model_names_near_ones(gateway: Gateway) -> None:
    assert "solo" in gateway.chat(ask("sollo")).json()["error"]["message"]


@pytest.mark.parametrize("coding", CODINGS)
def test_a_compressed_body_is_decoded(gateway: Gateway, provider: Provider, coding: str) -> None:
    response = post(gateway, CODINGS[coding](SIMPLE), **{"content-encoding": coding})
    assert response.status_code == 200
    assert json.loads(provider.requests[-1].body) == ask("m1")
    assert provider.requests[-1].header("content-encoding") is None


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (lambda data: data[:-4], (400, "invalid_request", None)),
        (lambda data: b"\x00\x00" + data[2:], (400, "invalid_request", None)),
        (lambda _: b"", (400, "invalid_request", None)),
    ],
    ids=["cut", "corrupt", "empty"],
)
def test_compressed_data_that_is_bad_is_refused(
    gateway: Gateway, coding: str, spoil: Callable[[bytes], bytes], expected: tuple[int, str, None]
) -> None:
    data = spoil(CODINGS[coding](SIMPLE * 20))
    assert error(post(gateway, data, **{"content-encoding": coding})) == expected


@pytest.mark.parametrize("coding", CODINGS)
def test_a_bomb_is_refused(gateway: Gateway, coding: str) -> None:
    bomb = CODINGS[coding](SIMPLE + b" " * (80 << 20))
    assert error(post(gateway, bomb, **{"content-encoding": coding})) == (413, "request_too_large", None)


@pytest.mark.parametrize("coding", ["compress", "gzip, br", "x-unknown"])
def test_another_coding_is_refused(gateway: Gateway, coding: str) -> None:
    assert error(post(gateway, SIMPLE, **{"content-encoding": coding})) == (415, "unsupported_encoding", None)


def padded(size: int) -> bytes:
    """The simple request, grown to a size."""
    return with_member(b'"x":"' + b"a" * (size - len(SIMPLE) - 7) + b'"')


@pytest.mark.parametrize("size", [32_769, 1_014_506, 2_500_000, 64 << 20])
def test_bodies_to_the_limit_arrive_whole_with_a_length(gateway: Gateway, provider: Provider, size: int) -> None:
    body = padded(size)
    assert len(body) == size
    assert post(gateway, body).status_code == 200
    record = provider.requests[-1]
    assert record.length == size - len('"solo"') + len('"m1"')
    assert record.header("content-length") == str(record.length)
    assert record.header("transfer-encoding") is None


def test_a_large_body_falls_back_whole(gateway: Gateway, provider: Provider) -> None:
    body = with_member(b'"simulate":{"faults":{"m1":"status:500","m2":"reset"}},"x":"' + b"a" * (20 << 20) + b'"')
    response = post(gateway, body.replace(b'"solo"', b'"trio"'))
    assert response.headers["x-zurelay-attempts"] == "4"
    assert {record.length for record in provider.requests} == {len(body) - len('"solo"') + len('"m1"')}


def test_a_body_over_the_limit_is_refused_by_its_declared_length(gateway: Gateway) -> None:
    with socket.create_connection(("127.0.0.1", gateway.port)) as client:
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {(64 << 20) + 1}\r\n\r\n"
        client.sendall(head.encode())
        assert client.recv(65536).startswith(b"HTTP/1.1 413 ")


def test_a_body_over_the_limit_is_refused_while_it_comes(gateway: Gateway) -> None:
    def pieces() -> Iterator[bytes]:
        yield SIMPLE[:-1] + b',"x":"'
        for _ in range(66):
            yield b"a" * (1 << 20)
        yield b'"}'

    assert error(post(gateway, pieces())) == (413, "request_too_large", None)


def test_a_body_that_ends_with_trailers_arrives_once(gateway: Gateway, provider: Provider) -> None:
    chunk = b"%x\r\n%s\r\n0\r\nx-trailer: 1\r\n\r\n" % (len(SIMPLE), SIMPLE)
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\ntrailer: x-trailer\r\n\r\n"
    with socket.create_connection(("127.0.0.1", gateway.port)) as client:
        client.sendall(head + chunk)
        assert client.recv(65536).startswith(b"HTTP/1.1 200 ")
    (record,) = provider.requests
    assert json.loads(record.body) == ask("m1")


def test_a_request_id_that_is_no_utf8_stops_no_request(gateway: Gateway, provider: Provider) -> None:
    answer = httpx.post(gateway.url + "/v1/chat/completions", headers={b"x-request-id": b"a\xff"}, content=SIMPLE)
    assert answer.status_code == 200
    assert len(provider.requests) == 1


def test_a_large_body_that_ends_with_trailers_over_http2_arrives_once(gateway: Gateway, provider: Provider) -> None:
    body = json.dumps(ask("solo", "x" * 40_000)).encode()
    pieces = [peer.data(1, body[start : start + 16_000]) for start in range(0, len(body), 16_000)]
    wanted = [(":method", "POST"), (":scheme", "http"), (":path", "/v1/chat/completions"), (":authority", "x")]
    head = peer.head(1, [*wanted, ("content-type", "application/json")])
    trailers = peer.head(1, [("x-trailer", "1")], Flag.END_HEADERS | Flag.END_STREAM)
    with socket.create_connection(("127.0.0.1", gateway.port)) as client:
        client.sendall(b"".join([PREFACE, peer.settings(), head, *pieces, trailers]))
        (record,) = provider.until(lambda requests: len(requests) == 1)
    assert json.loads(record.body) == ask("m1", "x" * 40_000)


@pytest.mark.parametrize(
    ("model", "asked", "applied", "sent"),
    [
        ("trio", None, "medium", None),
        ("trio", "low", "low", "low"),
        ("trio", "max", "high", "high"),
        ("trio", "none", "low", "low"),
        ("guarded", "none", "none", "none"),
        ("guarded", "low", "minimal", "minimal"),
        ("guarded", "medium", "high", "high"),
        ("solo", "high", "none", None),
    ],
)
def test_the_nearest_level_runs(
    gateway: Gateway, provider: Provider, model: str, asked: str | None, applied: str, sent: str | None
) -> None:
    more: dict[str, Any] = {} if asked is None else {"reasoning_effort": asked}
    response = gateway.chat(ask(model, **more))
    assert response.headers["x-zurelay-reasoning-effort"] == applied
    assert json.loads(provider.requests[-1].body).get("reasoning_effort") == sent
