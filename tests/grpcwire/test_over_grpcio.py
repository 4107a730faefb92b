"""grpcio's transport; what both have in common: test_conformance.py."""

from __future__ import annotations

import pytest

from grpcwire.methods import Methods
from zurelay.grpcwire.over_grpcio import CannotListenError, GrpcioServer


async def test_an_address_that_is_taken_is_told() -> None:
    first = GrpcioServer(Methods().all(), 100)
    port = await first.start("127.0.0.1:0")
    second = GrpcioServer(Methods().all(), 100)
    with pytest.raises(CannotListenError, match=str(port)):
        await second.start(f"127.0.0.1:{port}")
    await second.stop()
    await first.stop()
