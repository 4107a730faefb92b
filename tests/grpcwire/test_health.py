"""The health protocol, as Kubernetes and load balancers ask, over both transports."""

from __future__ import annotations

import asyncio
import pathlib
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from grpcwire.methods import serving
from zurelay.grpcwire.health import Health

Status = health_pb2.HealthCheckResponse
Stub = Any  # health_pb2_grpc.HealthStub, whose types know nothing of asyncio


def request(service: str = "") -> health_pb2.HealthCheckRequest:
    return health_pb2.HealthCheckRequest(service=service)


@pytest.fixture
def health() -> Health:
    return Health()


@pytest.fixture(params=["own", "grpcio"])
async def client(request: pytest.FixtureRequest, health: Health, tmp_path: pathlib.Path) -> AsyncIterator[Stub]:
    async with serving(request.param, health.methods(), str(tmp_path)) as channel:
        yield health_pb2_grpc.HealthStub(channel)


async def test_check_tells_whether_the_server_serves(client: Stub, health: Health) -> None:
    found = []
    for serving_now in (False, True, False):
        health.set(serving=serving_now)
        found.append((await client.Check(request())).status)
    assert [Status.NOT_SERVING, Status.SERVING, Status.NOT_SERVING] == found


async def test_check_knows_no_other_service(client: Stub) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await client.Check(request("a.B"))
    assert failed.value.code() is grpc.StatusCode.NOT_FOUND


async def test_watch_tells_each_change(client: Stub, health: Health) -> None:
    watch = client.Watch(request())
    assert (await asyncio.wait_for(watch.read(), 10)).status == Status.NOT_SERVING
    health.set(serving=True)
    assert (await asyncio.wait_for(watch.read(), 10)).status == Status.SERVING
    watch.cancel()


async def test_watch_says_that_a_service_is_unknown_and_goes_on(client: Stub) -> None:
    watch = client.Watch(request("a.B"))
    assert (await asyncio.wait_for(watch.read(), 10)).status == Status.SERVICE_UNKNOWN
    assert not watch.done()
    watch.cancel()
