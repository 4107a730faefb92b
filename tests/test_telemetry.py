"""One exporter a process, replaced when the settings send elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from otlp_receiver import Receiver
from zurelay import otlp
from zurelay.model import Telemetry
from zurelay.otel import OtelError, Signal
from zurelay.telemetry import Sending

TRACES = frozenset({Signal.TRACES})


@pytest.fixture(name="receiver")
def _receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.stop()


def span() -> bytes:
    return otlp.span(otlp.Span(trace="1" * 32, id="1" * 16, parent="", name="s", kind=1, start=1, end=2, own={}))


def test_nothing_is_sent_where_nobody_says_where() -> None:
    sending = Sending({}, TRACES)
    assert sending.configure(Telemetry()) is None
    sending.close()


def test_only_the_signals_of_this_process_are_sent(receiver: Receiver) -> None:
    sending = Sending({}, TRACES)
    exporter = sending.configure(Telemetry(otlp=receiver.endpoint, logs=True))
    assert exporter is not None
    assert [True, False, False] == [exporter.sends(signal) for signal in Signal]
    assert Sending({"OTEL_TRACES_EXPORTER": "none"}, TRACES).configure(Telemetry(otlp=receiver.endpoint)) is None
    sending.close()


def test_the_same_settings_keep_the_exporter_and_others_replace_it(receiver: Receiver) -> None:
    other = Receiver()
    sending = Sending({}, TRACES)
    first = sending.configure(Telemetry(otlp=receiver.endpoint))
    assert first is not None
    assert first is sending.configure(Telemetry(otlp=receiver.endpoint, capture_content=True))
    first.add(Signal.TRACES, [span()])
    second = sending.configure(Telemetry(otlp=other.endpoint))
    assert second is not None
    second.add(Signal.TRACES, [span()])
    sending.close()
    receiver.until(lambda r: r.spans)  # what waited in the old one has come
    assert 1 == len(other.spans)
    assert sending.configure(Telemetry()) is None
    other.stop()


def test_what_cannot_be_obeyed_changes_nothing(receiver: Receiver) -> None:
    environ: dict[str, str] = {}
    sending = Sending(environ, TRACES)
    exporter = sending.configure(Telemetry(otlp=receiver.endpoint))
    environ["OTEL_EXPORTER_OTLP_PROTOCOL"] = "http/json"
    with pytest.raises(OtelError):
        sending.configure(Telemetry(otlp=receiver.endpoint))
    assert exporter is sending.exporter
    sending.close()
