"""`zurelay sidecar` beside an Envoy that the test starts and ends, as the kubelet does in a pod."""

import json
import re
from pathlib import Path

import httpx
import pytest

from e2e.harness import until
from supervise.lives import HELLO, Config, Pod, Start, envoy_in, gone


def test_the_sidecar_serves_an_envoy_that_comes_later(start: Start, config: Config, tmp_path: Path) -> None:
    run = tmp_path / "run"
    sidecar = start("sidecar", "--config", str(config.path), "--run-dir", str(run)).ready()
    assert sidecar.out == [f"zurelay's sidecar is ready in {run}\n"]
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(run / "status.sock"))) as client:
        problems = client.get("http://status/readyz").json()["problems"]
    assert [re.sub(": .*", "", problem) for problem in problems] == ["Envoy's admin socket " + str(run / "admin.sock")]

    with envoy_in(run):
        until(lambda: config.ready() == [])
        assert config.ask() == 200
        config.path.write_text(config.path.read_text().replace("{m: {", "{m: {aliases: [n], "))
        until(lambda: sidecar.err[-1:] and "the change is in force" in sidecar.err[-1])
        assert sidecar.err[-1].startswith('{"time":')
    children = sidecar.children()
    sidecar.process.terminate()

    assert sidecar.ended() == 0
    assert gone(children)


def test_it_is_live_before_envoy_and_ready_with_it(start: Start, config: Config, tmp_path: Path) -> None:
    pod = Pod(start, config, tmp_path / "run")

    assert pod.ask("/livez").json() == {"live": True}
    assert pod.ask("/readyz").status_code == 503
    with envoy_in(pod.run):
        until(lambda: pod.ask("/readyz").status_code == 200)
        assert pod.ask("/livez").status_code == 200


def test_prepared_files_are_enough_for_envoy_to_start_first(start: Start, config: Config, tmp_path: Path) -> None:
    run = tmp_path / "run"
    prepared = start("sidecar", "--config", str(config.path), "--run-dir", str(run), "--prepare")
    assert prepared.ended() == 0, prepared.err
    assert prepared.out == [f"Envoy's files are in {run}\n"]

    with envoy_in(run):
        until(lambda: config.answers("/healthz"))
        assert config.status_of("/readyz").status_code == 503
        assert config.ask() == 503
        start("sidecar", "--config", str(config.path), "--run-dir", str(run)).ready()
        until(lambda: config.ready() == [])
        assert config.ask() == 200


def test_told_to_end_it_serves_a_stream_to_its_end_and_outlives_envoy(
    start: Start, config: Config, tmp_path: Path
) -> None:
    """Without native sidecars all containers of a pod are told at the same time; Envoy's hook asks for the drain."""
    pod = Pod(start, config, tmp_path / "run")
    with envoy_in(pod.run) as process, httpx.Client(timeout=30) as client:
        until(lambda: config.ready() == [])
        with config.stream(client, "tokens:8+gap:0.4") as stream:
            lines = stream.iter_lines()
            assert next(lines).startswith("data: {")

            pod.sidecar.process.terminate()
            until(lambda: config.ready() == ["draining"])
            late = httpx.post(config.chat, json=HELLO, timeout=10)
            assert (late.status_code, late.headers["connection"]) == (200, "close")
            rest = list(lines)
        assert pod.ask("/drain").json() == {"drained": True}  # asked again, answered when it is over
        assert [line for line in rest if line][-1] == "data: [DONE]"
        assert pod.sidecar.process.poll() is None
        process.terminate()
    assert pod.sidecar.ended() == 0
    said = [json.loads(line).get("message") for line in pod.sidecar.err]
    assert said[-1] == "drained"
    assert said.count("draining, for at most 60 s") == 1


def test_a_drain_is_over_when_its_time_is_and_the_rest_is_cut(start: Start, config: Config, tmp_path: Path) -> None:
    pod = Pod(start, config, tmp_path / "run", drain_seconds=1)
    with envoy_in(pod.run) as process, httpx.Client(timeout=30) as client:
        until(lambda: config.ready() == [])
        with config.stream(client, "stall-after:1") as stream:
            lines = stream.iter_lines()
            assert next(lines).startswith("data: {")
            assert pod.ask("/drain").json() == {"drained": False}
            process.terminate()
            with pytest.raises(httpx.RemoteProtocolError):
                list(lines)
        pod.sidecar.process.terminate()
        assert pod.sidecar.ended() == 0


def test_told_twice_it_does_not_wait(start: Start, config: Config, tmp_path: Path) -> None:
    pod = Pod(start, config, tmp_path / "run")
    with envoy_in(pod.run), httpx.Client(timeout=30) as client:
        until(lambda: config.ready() == [])
        children = pod.sidecar.children()
        with config.stream(client, "stall-after:1") as stream:
            lines = stream.iter_lines()  # kept: without it the stream would be closed
            assert next(lines).startswith("data: {")
            pod.sidecar.process.terminate()
            until(lambda: config.ready() == ["draining"])
            pod.sidecar.process.terminate()
            assert pod.sidecar.ended() == 130
    assert gone(children)


def test_an_envoy_that_is_started_again_in_the_same_directory_is_served(
    start: Start, config: Config, tmp_path: Path
) -> None:
    pod = Pod(start, config, tmp_path / "run")
    with envoy_in(pod.run) as process:
        until(lambda: config.ready() == [])
        process.kill()  # its sockets stay behind
    with envoy_in(pod.run):
        until(lambda: config.ready() == [])
        assert config.ask() == 200


def test_a_sidecar_that_is_started_again_serves_the_envoy_that_stayed(
    start: Start, config: Config, tmp_path: Path
) -> None:
    pod = Pod(start, config, tmp_path / "run")
    with envoy_in(pod.run):
        until(lambda: config.ready() == [])
        pod.sidecar.process.kill()
        assert pod.sidecar.ended() == -9
        Pod(start, config, pod.run)
        until(lambda: config.ready() == [])
        assert config.ask() == 200
