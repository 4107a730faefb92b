"""W3C Trace Context as its text says, and the choice of traces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zurelay import trace_context
from zurelay.trace_context import Context, Sampling, Trace

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
NEW_TRACE, NEW_SPAN = "f" * 32, "e" * 16

KEEP_ALL, KEEP_NONE = Sampling(ratio=1.0), Sampling(ratio=0.0)
HEX = st.text("0123456789abcdef", min_size=1)

PARENTS = {
    "sampled": (f"00-{TRACE}-{SPAN}-01", True),
    "not sampled": (f"00-{TRACE}-{SPAN}-00", False),
    "other flags count for nothing": (f"00-{TRACE}-{SPAN}-fe", False),
    "capitals, which Envoy reads": (f"00-{TRACE.upper()}-{SPAN.upper()}-00", False),
    "version ff, which Envoy reads": (f"ff-{TRACE}-{SPAN}-00", False),
    "the first of two, as Envoy does": (f"00-{TRACE}-{SPAN}-00,00-{'c' * 32}-{SPAN}-01", False),
    "all flags": (f"00-{TRACE}-{SPAN}-ff", True),
    "a later version": (f"01-{TRACE}-{SPAN}-01", True),
    "a later version with more": (f"cc-{TRACE}-{SPAN}-01-what-the-future-brings", True),
}


@pytest.mark.parametrize(("sent", "sampled"), PARENTS.values(), ids=PARENTS)
def test_a_context_is_read(sent: str, sampled: bool) -> None:
    assert Context(trace=TRACE, span=SPAN, sampled=sampled) == trace_context.parse(sent)


NO_PARENTS = {
    "empty": "",
    "version 00 with more": f"00-{TRACE}-{SPAN}-01-more",
    "a later version whose more lacks its dash": f"01-{TRACE}-{SPAN}-01more",
    "no trace": f"00-{'0' * 32}-{SPAN}-01",
    "no span": f"00-{TRACE}-{'0' * 16}-01",
    "short trace": f"00-{TRACE[1:]}-{SPAN}-01",
    "no hexadecimal": f"00-{TRACE[:-1]}g-{SPAN}-01",
    "a line's end": f"00-{TRACE}-{SPAN}-01\n",
    "spaces": f" 00-{TRACE}-{SPAN}-01",
}


@pytest.mark.parametrize("sent", NO_PARENTS.values(), ids=NO_PARENTS)
def test_what_is_no_context_starts_a_new_trace(sent: str) -> None:
    assert trace_context.parse(sent) is None


@given(st.text() | st.from_regex(r"\A[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}\Z"))
def test_what_is_read_is_written_as_it_was(sent: str) -> None:
    found = trace_context.parse(sent)
    if found is not None:
        again = trace_context.parse(trace_context.traceparent(found))
        assert found == again


STATES = {
    "one": ("a=b", "a=b"),
    "several, with spaces around": ("a=b ,\tc=d", "a=b,c=d"),
    "tenants": ("t1@vendor=x", "t1@vendor=x"),
    "empty members": ("a=b,,c=d,", "a=b,c=d"),
    "spaces inside": ("a=b c", "a=b c"),
    "a key twice": ("a=b,a=c", ""),
    "capitals": ("A=b", ""),
    "no value": ("a=", ""),
    "two equals": ("a=b=c", ""),
    "no ASCII": ("a=é", ""),
    "33 members": (",".join(f"k{number}=v" for number in range(33)), ""),
    "32 members": (",".join(f"k{number}=v" for number in range(32)),) * 2,
    "over 512": ("a=" + "b" * 255 + ",c=" + "d" * 255 + ",e=f", ""),
}


@pytest.mark.parametrize(("sent", "expected"), STATES.values(), ids=STATES)
def test_a_state_is_passed_on_whole_or_not_at_all(sent: str, expected: str) -> None:
    assert expected == trace_context.state(sent)


def test_the_parent_decides_and_a_share_of_the_rest_is_kept() -> None:
    parent = Context(trace=TRACE, span=SPAN, sampled=True)
    assert KEEP_NONE.keeps(TRACE, parent)
    assert not KEEP_NONE.keeps(TRACE, None)
    assert KEEP_ALL.keeps(TRACE, None)
    assert not Sampling(ratio=0.0, heed_parent=False).keeps(TRACE, parent)


@given(st.floats(0, 1), st.lists(st.integers(0, 2**128 - 1), min_size=1))
def test_a_larger_share_keeps_all_that_a_smaller_one_does(ratio: float, traces: list[int]) -> None:
    for number in traces:
        trace = f"{number:032x}"
        assert Sampling(ratio=ratio / 2).keeps(trace, None) <= Sampling(ratio=ratio).keeps(trace, None)


def fresh(size: int) -> str:
    return {16: NEW_TRACE, 8: NEW_SPAN}[size]


def test_the_span_is_envoys_where_it_made_one() -> None:
    sent = Context(trace=TRACE, span=SPAN, sampled=True, state="a=b")
    found = trace_context.began(f"{TRACE}-{'1' * 16}", sent, KEEP_NONE, fresh)
    assert Trace(id=TRACE, server="1" * 16, parent=SPAN, state="a=b", kept=True) == found


def test_a_trace_that_envoy_began_anew_has_no_parent() -> None:
    sent = Context(trace=TRACE, span=SPAN, sampled=True)
    found = trace_context.began(f"{'2' * 32}-{'1' * 16}", sent, KEEP_NONE, fresh)
    assert Trace(id="2" * 32, server="1" * 16) == found


@pytest.mark.parametrize("marked", ["", "-", "x-y", TRACE])
def test_where_envoy_made_no_span_it_is_ours(marked: str) -> None:
    sent = Context(trace=TRACE, span=SPAN, sampled=False)
    assert trace_context.began(marked, sent, KEEP_ALL, fresh) == Trace(
        id=TRACE, server=NEW_SPAN, parent=SPAN, kept=False, ours=True
    )
    assert trace_context.began(marked, None, KEEP_ALL, fresh) == Trace(
        id=NEW_TRACE, server=NEW_SPAN, kept=True, ours=True
    )


@pytest.mark.parametrize("marked", ["", f"{TRACE}-{'1' * 16}"])
def test_the_relay_has_a_span_of_its_own(marked: str) -> None:
    assert NEW_SPAN == trace_context.began(marked, None, KEEP_ALL, fresh, relayed=True).relay
    assert "" == trace_context.began(marked, None, KEEP_ALL, fresh).relay


def test_attempts_stand_below_the_relay_of_a_stream_else_below_the_server_span() -> None:
    assert "a" == Trace(id=TRACE, server="a").above
    assert "b" == Trace(id=TRACE, server="a", relay="b").above
