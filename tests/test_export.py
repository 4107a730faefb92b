"""A collector gets what is sent, in batches; one that is slow or away costs nobody anything but what is dropped."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
import trustme

from otlp_receiver import Receiver, free_port
from zurelay import export as exporting
from zurelay import otel, otlp
from zurelay.export import Exporter
from zurelay.model import Telemetry
from zurelay.otel import Export, Signal


@pytest.fixture(name="receiver")
def _receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.stop()


def to(port: int, **environ: str) -> Export:
    found = otel.export(Telemetry(otlp=f"http://127.0.0.1:{port}", logs=True), environ)
    assert found is not None
    return found


def span(number: int = 0, **attributes: Any) -> bytes:
    return otlp.span(
        otlp.Span(
            trace=f"{number + 1:032x}",
            id=f"{number + 1:016x}",
            parent="",
            name=f"span {number}",
            kind=otlp.CLIENT,
            start=1,
            end=2,
            own=attributes,
        )
    )


def test_spans_come_with_who_sent_them(receiver: Receiver) -> None:
    exporter = Exporter(
        to(receiver.port, OTEL_SERVICE_NAME="gate", OTEL_EXPORTER_OTLP_HEADERS="x-tenant=a"), "instance-1"
    )
    exporter.add(Signal.TRACES, [span(1, colour="red")])
    (found,) = receiver.until(lambda r: r.spans)
    assert ("span 1", "gate", "zurelay", "red") == (found.name, found.service, found.scope, found["colour"])
    assert "instance-1" == receiver.resources[0]["service.instance.id"]
    assert "a" == receiver.metadata[0]["x-tenant"]
    exporter.close()
    assert {Signal.TRACES: 0, Signal.METRICS: 0, Signal.LOGS: 0} == exporter.dropped


def test_many_come_in_few_messages(receiver: Receiver) -> None:
    exporter = Exporter(to(receiver.port), "i")
    exporter.add(Signal.TRACES, [span(number) for number in range(2_000)])
    receiver.until(lambda r: len(r.spans) == 2_000)
    assert len(receiver.raw) <= 8
    exporter.close()


def test_long_items_are_split_so_that_a_collector_takes_them(receiver: Receiver) -> None:
    exporter = Exporter(to(receiver.port), "i")
    exporter.add(Signal.TRACES, [span(number, text="x" * 300_000) for number in range(30)])
    receiver.until(lambda r: len(r.spans) == 30)
    assert max(map(len, receiver.raw)) < 4 << 20
    exporter.close()


def test_logs_and_metrics_have_their_own_way(receiver: Receiver) -> None:
    exporter = Exporter(to(receiver.port), "i")
    exporter.add(Signal.LOGS, [otlp.log(otlp.Log(at=1, body="said"))])
    exporter.add(Signal.METRICS, [otlp.gauge("g", "", "1", [otlp.Point({}, (1,))], 1)])
    receiver.until(lambda r: r.logs and r.metrics)
    assert "said" == receiver.logs[0].body.string_value
    exporter.close()


def test_what_is_not_sent_at_all_is_not_kept(receiver: Receiver) -> None:
    exporter = Exporter(to(receiver.port, OTEL_TRACES_EXPORTER="none"), "i")
    assert not exporter.sends(Signal.TRACES)
    exporter.add(Signal.TRACES, [span()])
    exporter.close()
    assert [] == receiver.spans


def test_a_collector_that_is_slow_holds_nobody_up_and_what_is_too_much_is_dropped(receiver: Receiver) -> None:
    receiver.hold.clear()
    exporter = Exporter(to(receiver.port), "i")
    sent = 3 * exporting.MOST_WAITING
    for number in range(sent):
        exporter.add(Signal.TRACES, [span(number)])
    dropped = exporter.dropped[Signal.TRACES]
    assert sent - exporting.MOST_WAITING - 8 * 512 <= dropped < sent
    receiver.hold.set()
    receiver.until(lambda r: len(r.spans) + exporter.dropped[Signal.TRACES] == sent)
    assert dropped == exporter.dropped[Signal.TRACES]
    exporter.close()


def test_a_collector_that_comes_back_gets_what_waited() -> None:
    port = free_port()
    exporter = Exporter(to(port), "i")
    exporter.add(Signal.TRACES, [span(7)])
    receiver = Receiver(port)
    try:
        assert "span 7" == receiver.until(lambda r: r.spans, 30)[0].name
    finally:
        exporter.close()
        receiver.stop()


def authorities(directory: pathlib.Path) -> tuple[str, Receiver]:
    """A receiver that speaks TLS, and the authority that signed for it, in a file that isn't there yet."""
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    chain = b"".join(blob.bytes() for blob in certificate.cert_chain_pems)
    pem = directory / "ca.pem"
    authority.cert_pem.write_to_path(str(pem))
    return str(pem), Receiver(tls=grpc.ssl_server_credentials([(certificate.private_key_pem.bytes(), chain)]))


def to_tls(receiver: Receiver, ca: str) -> Export:
    found = otel.export(Telemetry(otlp=f"https://127.0.0.1:{receiver.port}"), {"OTEL_EXPORTER_OTLP_CERTIFICATE": ca})
    assert found is not None
    return found


def test_what_waits_is_sent_once_the_file_of_authorities_is_there(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    ca, receiver = authorities(tmp_path)
    away = pathlib.Path(ca).rename(tmp_path / "away.pem")
    exporter = Exporter(to_tls(receiver, ca), "i")
    try:
        exporter.add(Signal.TRACES, [span(7)])
        receiver.until(lambda _: "No such file" in caplog.text)
        away.rename(ca)
        assert "span 7" == receiver.until(lambda r: r.spans, 30)[0].name
    finally:
        exporter.close()
        receiver.stop()


def test_what_waits_for_a_file_of_authorities_at_the_end_is_counted(tmp_path: pathlib.Path) -> None:
    ca, receiver = authorities(tmp_path)
    receiver.stop()
    exporter = Exporter(to_tls(receiver, f"{ca}.none"), "i")
    exporter.add(Signal.TRACES, [span(), span(1)])
    exporter.close()
    assert 2 == exporter.dropped[Signal.TRACES]


def test_the_end_sends_what_waits(receiver: Receiver) -> None:
    exporter = Exporter(to(receiver.port), "i")
    exporter.add(Signal.TRACES, [span()])
    exporter.close()
    assert 1 == len(receiver.spans)


def test_the_end_comes_though_the_collector_is_away() -> None:
    exporter = Exporter(to(free_port()), "i")
    exporter.add(Signal.TRACES, [span()])
    exporter.close(0.5)  # the test's own time limit tells when it doesn't
    assert exporter.dropped[Signal.TRACES] <= 1


def test_a_refusal_that_is_final_is_counted_at_once(receiver: Receiver) -> None:
    exporter = Exporter(to(receiver.port), "i")
    receiver.refuse = True
    exporter.add(Signal.TRACES, [span(), span(1)])
    receiver.until(lambda _: exporter.dropped[Signal.TRACES] == 2)
    exporter.close()


def test_what_a_collector_says_that_it_did_not_take_is_counted(receiver: Receiver) -> None:
    exporter = Exporter(to(receiver.port), "i")
    receiver.rejected = 300
    exporter.add(Signal.TRACES, [span()])
    receiver.until(lambda _: exporter.dropped[Signal.TRACES] == 300)
    exporter.close()
