import datetime as dt
import enum
from decimal import Decimal
from typing import Any

import pytest

from zurelay.model import Effort
from zurelay.settings import scalars


class Color(enum.Enum):
    """Words of a closed set."""

    RED = "red"
    GREEN = "green"


PRICE = scalars.number(Decimal(0), Decimal(100))
COUNT = scalars.integer(1, 1000)
BODY = scalars.size(1024, 1 << 30)
CODE = scalars.matching("[a-z]{2}", "two letters")
COLOR = scalars.choice(Color)

VALUES = {
    "text": (scalars.text, "hello there", "hello there"),
    "text in quotes": (scalars.text, "'5'", "5"),
    "text that YAML 1.1 takes for false": (scalars.text, "no", "no"),
    "a date is text": (scalars.text, "2023-06-01", "2023-06-01"),
    "a pattern": (CODE, "ab", "ab"),
    "true": (scalars.flag, "true", True),
    "false": (scalars.flag, "False", False),
    "a number as written": (PRICE, "0.025", Decimal("0.025")),
    "a number with a zero at its end": (PRICE, "3.50", Decimal("3.50")),
    "a whole number": (COUNT, "1_000", 1000),
    "a whole number with places": (COUNT, "7.0", 7),
    "a duration": (scalars.duration, "1m30s", 90.0),
    "a size": (BODY, "64MiB", 64 << 20),
    "bytes": (BODY, "4_096", 4096),
    "a small number as programs write it": (PRICE, "1.5e-07", Decimal("0.00000015")),
    "a large number as programs write it": (COUNT, "1e+03", 1000),
    "a word": (COLOR, "green", Color.GREEN),
    "a word of numbers": (scalars.choice(Effort), "none", Effort.none),
    "a time": (scalars.instant, "2027-01-01T00:00:00Z", dt.datetime(2027, 1, 1, tzinfo=dt.UTC)),
}


@pytest.mark.parametrize(("reader", "yaml", "value"), VALUES.values(), ids=VALUES)
def test_a_value_is_read(read_one: Any, reader: Any, yaml: str, value: object) -> None:
    assert (value, []) == read_one(reader, yaml)


BOUNDED = "write the number in at most 15 digits and 12 places after the point"
WRONG = {
    "a number for text": (scalars.text, "5", "expected text, not a number; put it in quotes"),
    "a truth for text": (scalars.text, "true", "expected text, not true or false; put it in quotes"),
    "nothing for text": (scalars.text, "~", "expected text, not nothing"),
    "a list for text": (scalars.text, "[]", "expected text, not a list"),
    "empty text": (scalars.text, "''", "expected text, but it is empty"),
    "two lines": (
        scalars.text,
        '"a\\nb"',
        "holds a character that can't be printed; write it on one line, without tabs",
    ),
    "another pattern": (CODE, "abc", "expected two letters"),
    "a pattern and more": (CODE, "'ab '", "expected two letters"),
    "yes": (scalars.flag, "yes", "expected true or false, not text"),
    "a quoted truth": (scalars.flag, "'true'", "expected true or false, not text"),
    "text for a number": (PRICE, "much", "expected a number, not text"),
    "a quoted number": (PRICE, "'3.5'", "expected a number, not text; leave the quotes out"),
    "negative": (PRICE, "-0.1", "expected a number from 0 to 100"),
    "too much": (PRICE, "100.01", "expected a number from 0 to 100"),
    "an exponent of too many places": (PRICE, "1e-13", BOUNDED),
    "an exponent of too many digits": (COUNT, "1.5e+15", BOUNDED),
    "more digits than an exponent takes away": (PRICE, "1000000000000000e-15", BOUNDED),
    "an exponent that would fill memory": (COUNT, "1e999999999", BOUNDED),
    "more digits than Python converts": (COUNT, "9" * 5000, BOUNDED),
    "too many places": (PRICE, "0.0000000000001", BOUNDED),
    "infinity": (PRICE, ".inf", "expected a number, not text"),
    "leading zeros": (COUNT, "010", "write the number without leading zeros; some readers take them for base 8"),
    "a fraction": (COUNT, "1.5", "expected a whole number from 1 to 1000"),
    "zero": (COUNT, "0", "expected a whole number from 1 to 1000"),
    "a duration without unit": (scalars.duration, "20", "the number has no unit: write it as 20s, 500ms, 2m or 1h"),
    "no duration at all": (scalars.duration, "0s", "expected a duration above 0s and up to 24h"),
    "days": (scalars.duration, "25h", "expected a duration above 0s and up to 24h"),
    "a list for a duration": (scalars.duration, "[]", "expected text or a number with its unit, not a list"),
    "a small size": (BODY, "1", "expected a size from 1KiB to 1GiB"),
    "a large size": (BODY, "2GiB", "expected a size from 1KiB to 1GiB"),
    "another word": (COLOR, "geen", "expected one of red or green, not geen; did you mean green?"),
    "quite another word": (COLOR, "1", "expected one of red or green, not 1"),
    "nothing for a word": (COLOR, "~", "expected one of red or green, not nothing"),
    "another level": (
        scalars.choice(Effort),
        "hihg",
        "expected one of none, minimal, low, medium, high, xhigh or max, not hihg; did you mean high or xhigh?",
    ),
    "a day for a time": (
        scalars.instant,
        "2027-01-01",
        "expected a time with its offset, such as 2027-01-01T00:00:00Z",
    ),
}


@pytest.mark.parametrize(("reader", "yaml", "problem"), WRONG.values(), ids=WRONG)
def test_a_wrong_value_says_what_to_write(read_one: Any, reader: Any, yaml: str, problem: str) -> None:
    assert (None, [f"line 1: {problem}"]) == read_one(reader, yaml)
