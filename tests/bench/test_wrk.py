from __future__ import annotations

import pytest

from bench import running, wrk

LINE = 'bench:{"requests":300,"microseconds":1500000,"p50":1210,"p99":4805,"failed":2}'
OUTPUT = (
    f"Running 2s test @ http://127.0.0.1:1/\n  300 requests in 1.50s, 2MB read\nRequests/sec:    200.00\n\n{LINE}\n"
)


def test_the_line_of_our_script_is_read_from_what_wrk_prints() -> None:
    assert wrk.Load(requests=300, microseconds=1_500_000, p50=1210, p99=4805, failed=2) == wrk.read(OUTPUT)


def test_a_rate_is_answers_a_second() -> None:
    assert wrk.read(OUTPUT).rate == 200.0


@pytest.mark.parametrize("text", ["unable to connect to 127.0.0.1:1 Connection refused\n", LINE + "\n" + LINE])
def test_output_without_exactly_one_result_is_shown(text: str) -> None:
    with pytest.raises(running.BenchError, match="did not say") as caught:
        wrk.read(text)
    assert text in str(caught.value)


def test_a_script_sends_body_and_headers_as_they_are() -> None:
    found = wrk.script(b'{"a": "b\\n"}', {"x-one": 'quote " and \\'})
    assert 'wrk.body = [==[{"a": "b\\n"}]==]' in found
    assert 'wrk.headers[ [==[x-one]==] ] = [==[quote " and \\]==]' in found


def test_a_text_that_would_end_its_own_quotes_is_refused() -> None:
    with pytest.raises(ValueError, match="bracket"):
        wrk.script(b"]==]", {})
