"""What is measured: the stub, Envoy alone, zurelay, and the peers that are installed; all speak to the same stub."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from bench import figures, proc
from bench import peers as installed
from bench.running import BenchError, Running, free_ports
from zurelay.supervise import machine

MODEL = "bench"
PATH = "/v1/chat/completions"
CHAT = {"model": MODEL, "messages": [{"role": "user", "content": "Say hello."}]}
_START = 90.0  # seconds: LiteLLM imports for many of them on a busy machine
_ASK_EVERY = 0.1
_SIDECAR = "sidecar"
_ENVOY = "Envoy"

Roles = dict[str, list[int]]


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A server under test. `roles` are the processes that do its work, by what they are."""

    name: str
    port: int
    headers: dict[str, str]
    roles: Roles

    @property
    def url(self) -> str:
        """Where chat requests go."""
        return f"http://127.0.0.1:{self.port}{PATH}"

    @property
    def pids(self) -> list[int]:
        """All its processes."""
        return [pid for pids in self.roles.values() for pid in pids]


class _Server(msgspec.Struct, frozen=True, kw_only=True):
    """How a target is started; `roles` finds its processes once it serves."""

    name: str
    port: int
    command: Sequence[str]
    env: Mapping[str, str]
    headers: dict[str, str] = {}
    roles: Callable[[int], Roles]


@contextlib.asynccontextmanager
async def running(directory: Path, *, peers: bool) -> AsyncIterator[list[Target]]:
    """Start everything that is there, and end it afterwards."""
    program, ports = await stub(directory), free_ports(6)
    servers = [_envoy(directory, ports), _zurelay(directory, ports), *(_peers(directory, ports) if peers else ())]
    async with contextlib.AsyncExitStack() as stack:
        command = [str(program), str(ports[0])]
        direct = _Server(
            name=figures.DIRECT, port=ports[0], command=command, env=os.environ, roles=lambda pid: {"stub": [pid]}
        )
        processes = []
        for server in (direct, *servers):
            processes.append(await Running.start(server.name, server.command, directory, server.env))
            stack.push_async_callback(processes[-1].stop)
        yield await asyncio.gather(*map(_ready, (direct, *servers), processes))


async def ready(name: str, port: int, process: Running) -> Target:
    """Wait for a zurelay's first answer."""
    return await _ready(_Server(name=name, port=port, command=(), env={}, roles=_zurelay_roles), process)


async def _ready(server: _Server, process: Running) -> Target:
    """Wait for its first answer."""
    loop = asyncio.get_running_loop()
    end = loop.time() + _START
    while (said := await asyncio.to_thread(_ask, server)) is not None:
        process.check()
        if loop.time() > end:
            raise BenchError(f"{server.name} does not answer within {_START:g} s: {said}")
        await asyncio.sleep(_ASK_EVERY)
    process.check()
    roles = server.roles(process.pid)
    return Target(name=server.name, port=server.port, headers=dict(server.headers), roles=roles)


def _ask(server: _Server) -> str | None:
    """Send one request; gives what is wrong, or nothing."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=_START)
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


async def stub(directory: Path) -> Path:
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
    return program


def _provider(ports: Sequence[int]) -> str:
    return f"http://127.0.0.1:{ports[0]}/v1"


def _envoy(directory: Path, ports: Sequence[int]) -> _Server:
    """Envoy as the thinnest proxy that it can be, on one thread as zurelay's is here."""
    config = directory / "envoy.json"
    config.write_bytes(msgspec.json.encode(_envoy_config(ports[1], ports[0])))
    binary = machine.envoy_binary(None, os.environ)
    quiet = ("--disable-hot-restart", "--log-level", "warning")
    return _Server(
        name=figures.ENVOY,
        port=ports[1],
        command=[binary, "--config-path", str(config), "--concurrency", "1", *quiet],
        env=os.environ,
        roles=lambda pid: {_ENVOY: [pid]},
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


def _zurelay(directory: Path, ports: Sequence[int]) -> _Server:
    """The gateway as its users start it, with one model, and no keys."""
    config = directory / "zurelay.yaml"
    config.write_bytes(
        msgspec.json.encode(  # JSON is YAML
            {
                "listen": {"port": ports[2], "host": "127.0.0.1"},
                "status": {"port": ports[3], "host": "127.0.0.1"},
                "auth": {"require": "none"},
                "providers": {"stub": {"base_url": _provider(ports), "format": "openai"}},
                "models": {MODEL: {"routes": [{"provider": "stub", "model": "stub"}], "context_window": 100_000}},
            }
        )
    )
    command = [sys.executable, "-P", "-m", "zurelay", "up", "--config", str(config), "--run-dir", str(directory / "z")]
    return _Server(name=figures.ZURELAY, port=ports[2], command=command, env=os.environ, roles=_zurelay_roles)


def _zurelay_roles(pid: int) -> Roles:
    found = proc.children(pid)
    workers = [child for child, command in found.items() if " worker " in command]
    envoys = [child for child, command in found.items() if "--config-path" in command]
    if not workers or len(envoys) != 1:
        raise BenchError(f"zurelay's processes are not as expected: {found}")
    return {_SIDECAR: workers, _ENVOY: envoys}


def _peers(directory: Path, ports: Sequence[int]) -> list[_Server]:
    found = []
    litellm, portkey = installed.litellm(), installed.portkey()
    if litellm is not None:
        config = directory / "litellm.yaml"
        config.write_text(installed.litellm_config(_provider(ports), MODEL))
        found.append(
            _Server(
                name=figures.LITELLM,
                port=ports[4],
                command=[litellm, "--config", str(config), "--host", "127.0.0.1", "--port", str(ports[4])],
                env=installed.LITELLM_ENV | {"HOME": str(directory)},
                roles=lambda pid: {"proxy": [pid]},
            )
        )
    if portkey is not None:
        found.append(
            _Server(
                name=figures.PORTKEY,
                port=ports[5],
                command=[*portkey, "--headless", f"--port={ports[5]}"],
                env=installed.PORTKEY_ENV | {"HOME": str(directory)},
                headers=installed.portkey_headers(_provider(ports)),
                roles=lambda pid: {"proxy": [pid]},
            )
        )
    return found
