"""What the guard times is the sidecar's real work, carried to its end."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest

from bench.guard import recorded, reference, work
from zurelay.protos import ext_proc_pb2
from zurelay.worker import Worker

Response = ext_proc_pb2.ProcessingResponse


@pytest.fixture
def worker(tmp_path: pathlib.Path) -> Iterator[Worker]:
    with work.worker(tmp_path) as made:
        yield made


@pytest.fixture
def loop() -> Iterator[work.Loop]:
    made = work.Loop()
    yield made
    made.close()


def test_a_request_is_planned_and_its_answer_judged(worker: Worker, loop: work.Loop) -> None:
    told = [Response.FromString(data) for data in loop.run_until_complete(work.request(worker))]
    kinds = ["request_headers", "request_body", "response_headers", "response_body"]
    assert kinds == [one.WhichOneof("response") for one in told]
    headers = told[-1].response_body.response.header_mutation.set_headers
    sent = {one.header.key: one.header.raw_value for one in headers}
    assert (b"200", recorded.MODEL.encode()) == (sent[":status"], sent["x-zurelay-model"])


def test_a_stream_reaches_the_client_chunk_by_chunk(worker: Worker, loop: work.Loop) -> None:
    loop.pieces = work.pieces(loop.run_until_complete(work.route(worker)), 50)
    told = [Response.FromString(data) for data in loop.run_until_complete(work.stream(worker))]
    bodies = [one.streamed_immediate_response.body_response.body for one in told[1:]]
    assert [recorded.TOKEN.replace(b'"stub"', b'"bench"')] * 50 == [one for one in bodies if b" word" in one]
    assert bodies[-1].endswith(b"data: [DONE]\n\n")
    assert told[-1].streamed_immediate_response.body_response.end_of_stream


def test_the_yardstick_is_the_same_work_each_time() -> None:
    assert reference.run() == reference.run() != 0
