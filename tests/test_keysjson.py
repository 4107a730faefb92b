import datetime as dt
import json
from decimal import Decimal
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zurelay import keysfile, keysjson, settings
from zurelay.model import Key, UsageLimits

A, B = "sha256:" + "a1" * 32, "sha256:" + "b2" * 32
ENTRY = f'{{"name": "a", "digest": "{A}"}}'
OTHER = f'{{"name":"b","digest":"{B}"}}'
KEYS = (Key(name="a", digest=b"\xa1" * 32), Key(name="b", digest=b"\xb2" * 32))

SURE = {
    "JSON on one line": f'{{"keys": [{ENTRY}, {OTHER}]}}',
    "JSON with space and tabs": f'\n{{\n\t"keys" : [\n\t{ENTRY} ,\n{OTHER}]}}\n',
    "a JSON object a line": f"keys:\n- {ENTRY}\n- {OTHER}\n",
    "no last line break": f"keys:\n- {ENTRY}\n- {OTHER}",
    "set in": f"keys:\n  - {ENTRY}\n  - {OTHER}\n\n",
    "CRLF": f"keys:\r\n- {ENTRY}\r\n- {OTHER}\r\n",
}


@pytest.mark.parametrize("text", SURE.values(), ids=SURE)
def test_json_is_read_the_fast_way(text: str) -> None:
    assert keysjson.parse(text) == KEYS


def test_every_field_is_read() -> None:
    entry = {
        "name": "a",
        "digest": A,
        "models": ["auto", "claude-*"],
        "smart_routing": False,
        "limits": {"requests_per_minute": 1, "tokens_per_minute": 2, "usd_per_day": 0.1, "usd_per_month": 40},
        "expires": "2027-01-01T00:00:00Z",
        "disabled": True,
    }

    expected = Key(
        name="a",
        digest=b"\xa1" * 32,
        models=("zurelay-auto", "claude-*"),
        smart_routing=False,
        limits=UsageLimits(
            requests_per_minute=1, tokens_per_minute=2, usd_per_day=Decimal("0.1"), usd_per_month=Decimal(40)
        ),
        expires=dt.datetime(2027, 1, 1, tzinfo=dt.UTC),
        disabled=True,
    )
    assert (expected,) == keysjson.parse(json.dumps({"keys": [entry]}))


IN_DOUBT = {
    "nothing": "",
    "no keys": "keys:\n",
    "YAML": f"keys: [{ENTRY}]",
    "a comment": f"keys:\n# one\n- {ENTRY}\n",
    "a comment behind": f"keys:\n- {ENTRY} # one\n",
    "another indentation": f"keys:\n- {ENTRY}\n - {OTHER}\n",
    "two on a line": f"keys:\n- {ENTRY}, {OTHER}\n",
    "one on two lines": f'keys:\n- {{"name": "a", "limits": {{}}\n- "digest": "{A}"}}\n',
    "a line that isn't closed": f'keys:\n- {{"name": "a", "digest": "{A}", "models": [{{}}\n- {{}}]}}\n',
    "broken JSON": f'{{"keys": [{ENTRY}}}',
    "a key twice": f'{{"keys": [{{"name": "b", "name": "a", "digest": "{A}"}}]}}',
    "a deep key twice": f'{{"keys":[{{"name":"a","digest":"{A}","limits":{{"usd_per_day":1,"usd_per_day":2}}}}]}}',
    "keys twice": f'{{"keys": [], "keys": [{ENTRY}]}}',
    "a key twice, once with an escape": f'{{"keys": [{{"n\\u0061me": "b", "name": "a", "digest": "{A}"}}]}}',
    "an unknown key": f'{{"keys": [{{"name": "a", "digest": "{A}", "x": 1}}]}}',
    "null": f'{{"keys": [{{"name": "a", "digest": "{A}", "expires": null}}]}}',
    "a name twice": f'{{"keys": [{ENTRY}, {{"name": "a", "digest": "{B}"}}]}}',
    "a digest twice": f'{{"keys": [{ENTRY}, {{"name": "b", "digest": "{A}"}}]}}',
    "no digest": '{"keys": [{"name": "a", "digest": "zk_a"}]}',
    "more than a digest": f'{{"keys": [{{"name": "a", "digest": "{A}a"}}]}}',
    "a model twice": f'{{"keys": [{{"name": "a", "digest": "{A}", "models": ["auto", "zurelay-auto"]}}]}}',
    "no pattern": f'{{"keys": [{{"name": "a", "digest": "{A}", "models": ["a b"]}}]}}',
    "a limit of nothing": f'{{"keys": [{{"name": "a", "digest": "{A}", "limits": {{"requests_per_minute": 0}}}}]}}',
    "no money": f'{{"keys": [{{"name": "a", "digest": "{A}", "limits": {{"usd_per_day": 0}}}}]}}',
    "an exponent": f'{{"keys": [{{"name": "a", "digest": "{A}", "limits": {{"usd_per_day": 1e1}}}}]}}',
    "money in quotes": f'{{"keys": [{{"name": "a", "digest": "{A}", "limits": {{"usd_per_day": "1"}}}}]}}',
    "no time": f'{{"keys": [{{"name": "a", "digest": "{A}", "expires": "2027-02-30T00:00:00Z"}}]}}',
    "half a character": f'{{"keys": [{{"name": "\ud800", "digest": "{A}"}}]}}',
}


@pytest.mark.parametrize("text", IN_DOUBT.values(), ids=IN_DOUBT)
def test_whatever_is_not_beyond_doubt_is_left_to_the_yaml_reader(text: str) -> None:
    assert keysjson.parse(text) is None


def slow(text: str) -> Any:
    """What the YAML reader alone makes of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keysjson, "parse", lambda _: None)
        try:
            return keysfile.parse(text)
        except settings.SettingsError as error:
            return error.problems


LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "requests_per_minute": st.sampled_from([1, 10**12]),
        "usd_per_day": st.sampled_from([1, 0.1, 2.50, 1_000_000_000]),
    },
)
GOOD = st.fixed_dictionaries(
    {"name": st.sampled_from("abcdefgh"), "digest": st.integers(0, 2**256 - 1).map("sha256:{:064x}".format)},
    optional={
        "models": st.lists(st.sampled_from(["auto", "gpt-*", ":x"]), max_size=2, unique=True),
        "limits": LIMITS,
        "expires": st.just("2027-01-01T00:00:00Z"),
        "disabled": st.booleans(),
    },
)
FLAWS: list[dict[str, Any]] = [
    {"name": "a b"},
    {"digest": A.upper()},
    {"digest": "x"},
    {"models": ["auto", "zurelay-auto"]},
    {"limits": {"requests_per_minute": 10**12 + 1}},
    {"limits": {"requests_per_minute": 1.0}},
    {"limits": {"usd_per_day": 1_000_000_001}},
    {"limits": {"usd_per_day": 0.0000001}},
    {"limits": {"usd_per_day": 1e3}},
    {"limits": None},
    {"expires": "0001-01-01T00:00:00+01:00"},
    {"disabled": None},
    {"other": 1},
]
ENTRIES = st.tuples(GOOD, st.just({}) | st.just({}) | st.just({}) | st.sampled_from(FLAWS)).map(
    lambda pair: pair[0] | pair[1]
)


@hypothesis.settings(deadline=None)
@given(st.lists(ENTRIES, max_size=3), st.booleans())
def test_the_fast_way_reads_what_the_yaml_reader_reads(entries: list[dict[str, Any]], lines: bool) -> None:
    text = (
        "keys:\n" + "".join(f"- {json.dumps(entry)}\n" for entry in entries) if lines else json.dumps({"keys": entries})
    )

    quick = keysjson.parse(text)

    assert quick is None or quick == slow(text)
