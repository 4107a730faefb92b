import datetime as dt
from collections.abc import Callable

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zurelay import units

DURATIONS = {
    "20s": 20.0,
    "500ms": 0.5,
    "2m": 120.0,
    "1h": 3600.0,
    "1.5s": 1.5,
    "1m30s": 90.0,
    "1h2m3s4ms": 3723.004,
    "0s": 0.0,
}
SIZES = {
    "64MiB": 64 << 20,
    "10MB": 10_000_000,
    "512KiB": 512 << 10,
    "1.5GiB": 3 << 29,
    "1 MiB": 1 << 20,
    "3kB": 3000,
    "3KB": 3000,
    "7B": 7,
    "1TiB": 1 << 40,
    "4096": 4096,
    "0": 0,
}
NO_DURATIONS = {
    "20": "the number has no unit: write it as 20s, 500ms, 2m or 1h",
    "": "expected a duration such as 20s, 500ms, 1m30s or 1h",
    "20 s": "expected a duration such as 20s, 500ms, 1m30s or 1h",
    "-5s": "expected a duration such as 20s, 500ms, 1m30s or 1h",
    "5S": "expected a duration such as 20s, 500ms, 1m30s or 1h",
    "1d": "expected a duration such as 20s, 500ms, 1m30s or 1h",
    "1e3s": "expected a duration such as 20s, 500ms, 1m30s or 1h",
    "9" * 16 + "s": "expected a duration such as 20s, 500ms, 1m30s or 1h",
    "٣s": "expected a duration such as 20s, 500ms, 1m30s or 1h",
    "30s1m": "expected each unit once and the larger ones first, such as 1h30m",
    "1s1s": "expected each unit once and the larger ones first, such as 1h30m",
}
NO_SIZES = {
    "": "expected a size such as 64MiB, 10MB, 512KiB or a number of bytes",
    "big": "expected a size such as 64MiB, 10MB, 512KiB or a number of bytes",
    "-1": "expected a size such as 64MiB, 10MB, 512KiB or a number of bytes",
    "64Mi": "unknown unit of size: write it as MiB",
    "64mib": "unknown unit of size: write it as MiB",
    "64mb": "unknown unit of size: write it as MB",
    "64M": "unknown unit of size: write it as MB",
    "64parsec": "unknown unit of size: write it as B, KiB, MiB, GiB, KB, MB or GB",
    "0.5B": "the size is no whole number of bytes",
    "1.0000001MB": "the size is no whole number of bytes",
}


@pytest.mark.parametrize(("text", "seconds"), DURATIONS.items())
def test_a_duration_is_read_as_seconds(text: str, seconds: float) -> None:
    assert seconds == units.duration(text)


@pytest.mark.parametrize(("text", "count"), SIZES.items())
def test_a_size_is_read_as_bytes(text: str, count: int) -> None:
    assert count == units.size(text)


@pytest.mark.parametrize(("text", "message"), NO_DURATIONS.items())
def test_what_is_no_duration_is_refused_with_how_to_write_one(text: str, message: str) -> None:
    with pytest.raises(units.UnitError) as caught:
        units.duration(text)

    assert message == str(caught.value)


@pytest.mark.parametrize(("text", "message"), NO_SIZES.items())
def test_what_is_no_size_is_refused_with_how_to_write_one(text: str, message: str) -> None:
    with pytest.raises(units.UnitError) as caught:
        units.size(text)

    assert message == str(caught.value)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(20.0, "20s"), (0.5, "500ms"), (90.0, "1m30s"), (3600.0, "1h"), (0.0, "0s"), (1e-7, "0.0000001s")],
)
def test_a_duration_is_written_in_the_units_that_people_use(seconds: float, text: str) -> None:
    assert text == units.duration_text(seconds)


@pytest.mark.parametrize(
    ("count", "text"), [(64 << 20, "64MiB"), (10_000_000, "10MB"), (1, "1B"), (0, "0B"), (1023, "1023B")]
)
def test_a_size_is_written_in_the_largest_unit_that_holds_it_whole(count: int, text: str) -> None:
    assert text == units.size_text(count)


@hypothesis.settings(deadline=None)
@given(st.floats(min_value=0, max_value=1e9))
def test_a_duration_written_and_read_is_the_same(seconds: float) -> None:
    rounded = round(seconds, 9)

    assert rounded == units.duration(units.duration_text(rounded))


@hypothesis.settings(deadline=None)
@given(st.integers(min_value=0, max_value=86_400_000))
def test_whole_milliseconds_written_and_read_are_the_same(milliseconds: int) -> None:
    assert milliseconds / 1000 == units.duration(units.duration_text(milliseconds / 1000))


@hypothesis.settings(deadline=None)
@given(st.integers(min_value=0, max_value=10**14))
def test_a_size_written_and_read_is_the_same(count: int) -> None:
    assert count == units.size(units.size_text(count))


def outcome(read: Callable[[str], object], text: str) -> object:
    try:
        return read(text)
    except units.UnitError as error:
        return error


@hypothesis.settings(deadline=None)
@given(st.text(max_size=30))
def test_any_text_is_a_value_or_an_error_that_says_what_to_write(text: str) -> None:
    for read in (units.duration, units.size, units.instant):
        assert str(outcome(read, text))


@pytest.mark.parametrize(
    ("text", "instant"),
    {
        "2027-01-01T00:00:00Z": dt.datetime(2027, 1, 1, tzinfo=dt.UTC),
        "2027-01-01t00:00:00z": dt.datetime(2027, 1, 1, tzinfo=dt.UTC),
        "2027-01-01T02:30:00+02:30": dt.datetime(2027, 1, 1, tzinfo=dt.UTC),
        "2027-01-01T00:00:00.250Z": dt.datetime(2027, 1, 1, 0, 0, 0, 250_000, tzinfo=dt.UTC),
    }.items(),
)
def test_a_time_is_read_as_utc(text: str, instant: dt.datetime) -> None:
    assert instant == units.instant(text)


@pytest.mark.parametrize(
    ("text", "message"),
    {
        "2027-01-01": "expected a time with its offset, such as 2027-01-01T00:00:00Z",
        "2027-01-01T00:00:00": "expected a time with its offset, such as 2027-01-01T00:00:00Z",
        "2027-01-01 00:00:00Z": "expected a time with its offset, such as 2027-01-01T00:00:00Z",
        "2027-02-29T00:00:00Z": "there is no such day or time; expected one such as 2027-01-01T00:00:00Z",
        "2027-01-01T25:00:00Z": "there is no such day or time; expected one such as 2027-01-01T00:00:00Z",
        "0001-01-01T00:00:00+10:00": "there is no such day or time; expected one such as 2027-01-01T00:00:00Z",
    }.items(),
)
def test_what_is_no_time_is_refused(text: str, message: str) -> None:
    with pytest.raises(units.UnitError) as caught:
        units.instant(text)

    assert message == str(caught.value)
