"""The doors: keys, paths, methods, Envoy's own failures, the status listener, what isn't reachable (SPEC 2, 10)."""

from __future__ import annotations

import hashlib
import pathlib
import socket
import stat
from collections.abc import Iterator

import httpx
import pytest

from e2e.conftest import catalog
from e2e.harness import Gateway, Provider, ask

KEYS = {"team-a": "zk_aaa", "old": "zk_old", "off": "zk_off", "narrow": "zk_narrow"}
RULES = {
    "old": "expires: 2020-01-01T00:00:00Z",
    "off": "disabled: true",
    "narrow": 'models: ["so*"]',
}


def keys_file() -> str:
    lines = ["keys:"]
    for name, key in KEYS.items():
        digest = hashlib.sha256(key.encode()).hexdigest()
        rule = f", {RULES[name]}" if name in RULES else ""
        lines.append(f'- {{name: {name}, digest: "sha256:{digest}"{rule}}}')
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def locked(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway that wants keys."""
    directory: pathlib.Path = tmp_path_factory.mktemp("locked")
    (directory / "keys.yaml").write_text(keys_file())
    config = catalog(provider.port) | {"auth": {"require": "key", "keys": "keys.yaml"}}
    running = Gateway(directory, config).wait_ready()
    yield running
    assert running.stop() == 0
    assert "zk_" not in "".join(running.log)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer zk_wrong"},
        {"authorization": "Basic zk_aaa"},
        {"authorization": "Bearer"},
        {"x-api-key": "zk_aaa2"},
        {"authorization": "Bearer zk_old"},
        {"authorization": "Bearer zk_off"},
        {"authorization": f"Bearer {'x' * 20_000}"},
    ],
)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/models"])
def test_without_a_good_key_nothing_opens(
    locked: Gateway, provider: Provider, path: str, headers: dict[str, str]
) -> None:
    provider.reset()
    method = "POST" if path.endswith("completions") else "GET"
    response = httpx.request(method, locked.url + path, headers=headers)
    assert response.status_code == 401
    assert response.json()["error"]["code"] == "invalid_api_key"
    assert response.json()["error"]["type"] == "authentication_error"
    assert provider.requests == []


@pytest.mark.parametrize(
    "headers", [{"authorization": "Bearer zk_aaa"}, {"authorization": "bearer  zk_aaa"}, {"x-api-key": "zk_aaa"}]
)
def test_a_good_key_opens_in_both_forms(locked: Gateway, headers: dict[str, str]) -> None:
    assert locked.chat(ask("solo"), headers=headers).status_code == 200


def test_a_narrow_key_sees_and_uses_its_models_alone(locked: Gateway) -> None:
    headers = {"x-api-key": "zk_narrow"}
    listed = httpx.get(locked.url + "/v1/models", headers=headers).json()["data"]
    assert [model["id"] for model in listed] == ["solo"]
    refused = locked.chat(ask("trio"), headers=headers)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "model_not_allowed")


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/nope", 404, "not_found"),
        ("POST", "/v1/embeddings", 404, "not_found"),
        ("GET", "/", 404, "not_found"),
        ("GET", "/v1/chat/completions", 405, "method_not_allowed"),
        ("DELETE", "/v1/models/solo", 405, "method_not_allowed"),
        ("PUT", "/v1/models", 405, "method_not_allowed"),
        ("GET", "/v1/models/nope", 404, "model_not_found"),
    ],
)
def test_what_isnt_there_is_said_so_in_the_error_shape(
    gateway: Gateway, method: str, path: str, status: int, code: str
) -> None:
    response = httpx.request(method, gateway.url + path)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert ("allow" in response.headers) is (status == 405)


def test_an_error_under_messages_has_anthropics_shape(gateway: Gateway) -> None:
    body = httpx.post(gateway.url + "/v1/messages/nope", content=b"{}").json()
    assert body["type"] == "error"
    assert body["error"]["type"] == "not_found_error"
    assert body["request_id"].startswith("req_")


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET / HTTP/1.1\r\nhost: x\r\nbad header\r\n\r\n", b"400"),
        (b"garbage\r\n\r\n", b"400"),
        (b"GET /v1/models HTTP/1.1\r\nhost: x\r\nx-big: " + b"a" * 100_000 + b"\r\n\r\n", b"431"),
    ],
)
def test_what_envoy_refuses_has_our_shape(gateway: Gateway, request_bytes: bytes, status: bytes) -> None:
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=10) as client:
        client.sendall(request_bytes)
        answer = b""
        while piece := client.recv(65536):
            answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.split()[1] == status
    assert b"content-type: application/json" in head.lower()
    assert body.startswith(b'{"error":{')


def test_the_status_listener_answers_without_a_key(gateway: Gateway) -> None:
    assert httpx.get(gateway.status_url + "/healthz").text == "ok\n"
    assert httpx.get(gateway.status_url + "/readyz").status_code == 200
    metrics = httpx.get(gateway.status_url + "/metrics").text
    assert "zurelay_workers_alive 2" in metrics
    assert "envoy_server_live" in metrics


def test_the_admin_and_egress_sockets_are_the_owners_alone(gateway: Gateway) -> None:
    for name in ("admin.sock", "egress.sock"):
        mode = (gateway.run_dir / name).stat().st_mode
        assert stat.S_ISSOCK(mode)
        assert stat.S_IMODE(mode) & 0o077 == 0


@pytest.mark.parametrize("plan", [None, "wrong {}", "{}"])
def test_the_egress_listener_refuses_whoever_does_not_know_the_token(
    gateway: Gateway, provider: Provider, plan: str | None
) -> None:
    transport = httpx.HTTPTransport(uds=str(gateway.run_dir / "egress.sock"))
    with httpx.Client(transport=transport) as client:
        headers = {} if plan is None else {"x-zurelay-plan": plan}
        response = client.post("http://egress/", json=ask("solo"), headers=headers)
    assert response.status_code == 403
    assert provider.requests == []


def test_only_the_two_listeners_take_connections(gateway: Gateway) -> None:
    listening = set()
    for line in pathlib.Path(f"/proc/{gateway.envoy}/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A":
            listening.add((fields[9], int(fields[1].partition(":")[2], 16)))
    inodes = {
        link.readlink().name.removeprefix("socket:[").rstrip("]")
        for link in pathlib.Path(f"/proc/{gateway.envoy}/fd").iterdir()
        if "socket:" in str(link.readlink())
    }
    ports = {port for inode, port in listening if inode in inodes}
    assert ports == {gateway.port, gateway.status_port}
