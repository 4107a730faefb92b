"""What the guard times is the sidecar's real work, carried to its end."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest

from bench.guard import recorded, reference, work
from bench.guard.sidecar import Loop, told
from zurelay.protos import ext_proc_pb2

Response = ext_proc_pb2.ProcessingResponse


@pytest.fixture
def loop() -> Iterator[Loop]:
    made = Loop()
    yield made
    made.close()


@pytest.fixture
def ready(tmp_path: pathlib.Path, loop: Loop) -> Iterator[work.Work]:
    with work.worker(tmp_path) as made:
        yield loop.run_until_complete(work.Work.ready(made))


def test_a_request_is_planned_and_its_answer_judged(ready: work.Work, loop: Loop) -> None:
    for _ in range(3):  # one like the other
        said = [Response.FromString(data) for data in told(loop.run_until_complete(ready.request()))]
        kinds = ["request_headers", "request_body", "response_headers", "response_body"]
        assert kinds == [one.WhichOneof("response") for one in said]
        headers = said[-1].response_body.response.header_mutation.set_headers
        sent = {one.header.key: one.header.raw_value for one in headers}
        assert (b"200", recorded.MODEL.encode()) == (sent[":status"], sent["x-zurelay-model"])


def test_each_request_is_put_on_record(tmp_path: pathlib.Path, loop: Loop) -> None:
    with work.worker(tmp_path) as made:
        ready = loop.run_until_complete(work.Work.ready(made))
        for _ in range(3):
            loop.run_until_complete(ready.request())
    assert (tmp_path / "log").read_bytes().count(b'"outcome":"answered"') == 3


def test_a_stream_reaches_the_client_chunk_by_chunk(ready: work.Work, loop: Loop) -> None:
    loop.pieces = ready.pieces(50)
    said = [Response.FromString(data) for data in told(loop.run_until_complete(ready.stream()))]
    bodies = [one.streamed_immediate_response.body_response.body for one in said[1:]]
    assert [recorded.TOKEN.replace(b'"stub"', b'"bench"')] * 50 == [one for one in bodies if b" word" in one]
    assert bodies[-1].endswith(b"data: [DONE]\n\n")
    assert said[-1].streamed_immediate_response.body_response.end_of_stream


def test_the_yardstick_is_the_same_work_each_time() -> None:
    assert reference.run() == reference.run() != 0
