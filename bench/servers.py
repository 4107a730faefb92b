"""How each server is started: the stub, Envoy alone, zurelay under any settings, and the peers that are installed."""

from __future__ import annotations

import asyncio
import http.client
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from bench import figures, proc
from bench import peers as installed
from bench.running import BenchError, free_ports
from zurelay.model import Model
from zurelay.supervise import machine

MODEL = "bench"
PASSING = "bench-through"  # the model whose streams pass through
PASSES = "passthrough" in Model.__struct_fields__
PATH = "/v1/chat/completions"
CHAT = {"model": MODEL, "messages": [{"role": "user", "content": "Say hello."}]}
SIDECAR = "sidecar"
ENVOY = "Envoy"

_CONTEXT_WINDOW = 100_000_000  # tokens: the large request must fit
_PATIENCE = 90.0  # seconds for the first answer of a server

Roles = dict[str, list[int]]


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """How a target is started; `roles` finds its processes once it serves. `whole`: asked for whole answers too."""

    name: str
    port: int
    command: Sequence[str]
    env: Mapping[str, str]
    headers: dict[str, str] = {}
    whole: bool = True
    roles: Callable[[int], Roles]


def ask(server: Server) -> str | None:
    """Send one request; gives what is wrong, or nothing."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=_PATIENCE)
    headers = {"content-type": "application/json", **server.headers}
    try:
        connection.request("POST", PATH, msgspec.json.encode(CHAT), headers)
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException) as error:
        return str(error)
    finally:
        connection.close()
    return None if answer.status == http.HTTPStatus.OK and b"A small answer" in body else f"{answer.status} {body!r}"


async def stub(directory: Path) -> Server:
    """Build the stub."""
    program = directory / "stub"
    compiler = os.environ.get("CC", "cc")
    source = Path(__file__).with_name("stub.c")
    try:
        process = await asyncio.create_subprocess_exec(compiler, "-O2", "-o", str(program), str(source))
    except FileNotFoundError:
        raise BenchError(f"There is no C compiler ({compiler}) to build the stub: apt install gcc libc6-dev") from None
    if await process.wait():
        raise BenchError("The stub can't be built; the compiler says why above.")
    (port,) = free_ports(1)
    command = [str(program), str(port)]
    return Server(name=figures.DIRECT, port=port, command=command, env=os.environ, roles=lambda pid: {"stub": [pid]})


def _provider(port: int) -> str:
    return f"http://127.0.0.1:{port}/v1"


def envoy(directory: Path, provider: int) -> Server:
    """Envoy as the thinnest proxy that it can be, on one thread as zurelay's is here."""
    config = directory / "envoy.json"
    (port,) = free_ports(1)
    config.write_bytes(msgspec.json.encode(_envoy_config(port, provider)))
    binary = machine.envoy_binary(None, os.environ)
    quiet = ("--disable-hot-restart", "--log-level", "warning")
    return Server(
        name=figures.ENVOY,
        port=port,
        command=[binary, "--config-path", str(config), "--concurrency", "1", *quiet],
        env=os.environ,
        roles=lambda pid: {ENVOY: [pid]},
    )


def _envoy_config(port: int, provider: int) -> dict[str, object]:
    kinds = "type.googleapis.com/envoy.extensions.filters"
    manager = {
        "@type": f"{kinds}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "bench",
        "generate_request_id": False,
        "route_config": {
            "virtual_hosts": [
                {
                    "name": "all",
                    "domains": ["*"],
                    "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "stub", "timeout": "0s"}}],
                }
            ]
        },
        "http_filters": [
            {"name": "envoy.filters.http.router", "typed_config": {"@type": f"{kinds}.http.router.v3.Router"}}
        ],
    }
    hcm = {"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}
    most = [{"max_connections": 100_000, "max_pending_requests": 100_000, "max_requests": 100_000}]
    endpoint = {"endpoint": {"address": _address(provider)}}
    cluster = {
        "name": "stub",
        "type": "STATIC",
        "connect_timeout": "5s",
        "circuit_breakers": {"thresholds": most},
        "load_assignment": {"cluster_name": "stub", "endpoints": [{"lb_endpoints": [endpoint]}]},
    }
    listener = {"name": "bench", "address": _address(port), "filter_chains": [{"filters": [hcm]}]}
    return {"static_resources": {"listeners": [listener], "clusters": [cluster]}}


def _address(port: int) -> dict[str, object]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def zurelay(
    directory: Path, provider: int, name: str = figures.ZURELAY, settings: Mapping[str, object] | None = None
) -> Server:
    """The gateway as its users start it, with one model, no keys, and `settings` on top."""
    place = directory / f"z{len(list(directory.glob('z*')))}"  # short: Unix sockets' paths may have 107 bytes
    place.mkdir()
    listen, status = free_ports(2)
    base = {
        "listen": {"port": listen, "host": "127.0.0.1"},
        "status": {"port": status, "host": "127.0.0.1"},
        "auth": {"require": "none"},
        "providers": {"stub": {"base_url": _provider(provider), "format": "openai"}},
        "models": _models(),
        "store": {"sqlite": str(place / "zurelay.db")},
    }
    config = place / "zurelay.yaml"
    config.write_bytes(msgspec.json.encode({**base, **(settings or {})}))  # JSON is YAML
    command = [sys.executable, "-P", "-m", "zurelay", "up", "--config", str(config), "--run-dir", str(place / "run")]
    return Server(name=name, port=listen, command=command, env=os.environ, roles=_zurelay_roles)


def _models() -> dict[str, object]:
    price = {"input": 1, "output": 2}
    model = {"routes": [{"provider": "stub", "model": "stub"}], "context_window": _CONTEXT_WINDOW, "price": price}
    return {MODEL: model, PASSING: {**model, "passthrough": True}} if PASSES else {MODEL: model}


def _zurelay_roles(pid: int) -> Roles:
    found = proc.children(pid)
    workers = [child for child, command in found.items() if " worker " in command]
    envoys = [child for child, command in found.items() if "--config-path" in command]
    if not workers or len(envoys) != 1:
        raise BenchError(f"zurelay's processes are not as expected: {found}")
    return {SIDECAR: workers, ENVOY: envoys}


def peers(directory: Path, provider: int) -> list[Server]:
    """Those of the peers that `make bench-peers` has installed."""
    found = []
    litellm, portkey = installed.litellm(), installed.portkey()
    ports = free_ports(2)
    if litellm is not None:
        config = directory / "litellm.yaml"
        config.write_text(installed.litellm_config(_provider(provider), MODEL))
        found.append(
            Server(
                name=figures.LITELLM,
                port=ports[0],
                command=[litellm, "--config", str(config), "--host", "127.0.0.1", "--port", str(ports[0])],
                env=installed.LITELLM_ENV | {"HOME": str(directory)},
                roles=lambda pid: {"proxy": [pid]},
            )
        )
    if portkey is not None:
        found.append(
            Server(
                name=figures.PORTKEY,
                port=ports[1],
                command=[*portkey, "--headless", f"--port={ports[1]}"],
                env=installed.PORTKEY_ENV | {"HOME": str(directory)},
                headers=installed.portkey_headers(_provider(provider)),
                roles=lambda pid: {"proxy": [pid]},
            )
        )
    return found
