"""The fast way into keys files in YAML: sure of what is commonly written, else of the exact reader's mind."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from zurelay import keysedit, keysfile, keysyaml
from zurelay.keysedit import Rules
from zurelay.model import Key, UsageLimits
from zurelay.problems import SettingsError

A, B = "sha256:" + "a1" * 32, "sha256:" + "b2" * 32
OTHER = Key(name="b", digest=b"\xb2" * 32)
WHOLE = Key(
    name="team-a",
    digest=b"\xa1" * 32,
    models=("zurelay-auto", "claude-*"),
    smart_routing=False,
    limits=UsageLimits(
        requests_per_minute=600, tokens_per_minute=200_000, usd_per_day=Decimal("50.5"), usd_per_month=Decimal(1000)
    ),
    expires=dt.datetime(2027, 1, 1, tzinfo=dt.UTC),
    disabled=True,
)
LIMITS = "requests_per_minute: 600, tokens_per_minute: 200000, usd_per_day: 50.5, usd_per_month: 1000"
SHAPES = {
    "an entry a line": f"""keys:
- {{name: team-a, digest: "{A}", models: [zurelay-auto, "claude-*"], smart_routing: false,\
 limits: {{{LIMITS}}}, expires: 2027-01-01T00:00:00Z, disabled: true}}
- {{name: b, digest: "{B}"}}
""",
    "a field a line": f"""keys:
- name: team-a
  digest: {A}
  models: [auto, 'claude-*']
  smart_routing: false
  limits: {{{LIMITS}}}
  expires: "2027-01-01T00:00:00Z"
  disabled: true
- digest: '{B}'
  name: "b"
""",
    "all in lines, set in, with comments": f"""# The keys of the teams.

keys:
    # The first: ção {{[
    - name: 'team-a'
      digest: {A}

      models:
      - zurelay-auto
      - "claude-*"
      limits:
        usd_per_month: 1000
        usd_per_day: 50.5
        tokens_per_minute: 200000
        requests_per_minute: 600
      expires: '2027-01-01T01:00:00+01:00'
      # Not any more.
      disabled: true
      smart_routing: false
    - name: b
      digest: {B}
""",
}


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_what_people_and_programs_write_is_read_the_fast_way(text: str, newline: str) -> None:
    assert (WHOLE, OTHER) == keysyaml.parse(text.replace("\n", newline))
    assert (WHOLE, OTHER) == keysfile._exactly(text.replace("\n", newline))


def test_what_a_yaml_library_writes_is_read_the_fast_way() -> None:
    entries: list[dict[str, Any]] = [
        {"name": f"team-{n}", "digest": f"sha256:{n:064x}", "models": ["claude-*"], "limits": {"usd_per_day": n + 1}}
        for n in range(50)
    ]
    for text in (yaml.safe_dump({"keys": entries}), yaml.safe_dump({"keys": entries}, sort_keys=False)):
        assert 50 == len(keysyaml.parse(text) or ())
        assert keysfile._exactly(text) == keysyaml.parse(text)


def test_what_we_write_ourselves_is_read_the_fast_way() -> None:
    rules = Rules(models=("zurelay-auto", "claude-*"), smart_routing=False, limits=WHOLE.limits, expires=WHOLE.expires)
    text = "keys:\n" + "\n".join(
        keysedit.entry(f"{name}", f"zk_{name}", each) for name, each in (("a", rules), ("b-1", Rules()))
    )
    assert keysfile._exactly(text) == keysyaml.parse(text) is not None


DOUBTFUL = {
    "nothing": "",
    "no keys": "keys: []",
    "an anchor": f"keys:\n- &a {{name: a, digest: {A}}}",
    "a tag": f"keys:\n- !x {{name: a, digest: {A}}}",
    "a name twice": f"keys:\n- {{name: a, digest: {A}}}\n- {{name: a, digest: {B}}}",
    "a digest twice": f"keys:\n- {{name: a, digest: {A}}}\n- {{name: b, digest: {A}}}",
    "a field twice": f"keys:\n- {{name: a, digest: {A}, disabled: true, disabled: false}}",
    "a limit twice": f"keys:\n- {{name: a, digest: {A}, limits: {{usd_per_day: 1, usd_per_day: 2}}}}",
    "two forms of models": f"keys:\n- name: a\n  digest: {A}\n  models: [a]\n  models:\n  - b",
    "a model twice": f"keys:\n- {{name: a, digest: {A}, models: [auto, zurelay-auto]}}",
    "an unknown field": f"keys:\n- {{name: a, digest: {A}, nme: b}}",
    "a field missing": "keys:\n- {name: a}",
    "null": f"keys:\n- {{name: null, digest: {A}}}",
    "a number for a name": f"keys:\n- {{name: 12, digest: {A}}}",
    "true for a name": f"keys:\n- {{name: True, digest: {A}}}",
    "a mapping for a name": f"keys:\n- name: a:\n  digest: {A}",
    "a glob without quotes": f"keys:\n- {{name: a, digest: {A}, models: [*]}}",
    "a limit of nothing": f"keys:\n- {{name: a, digest: {A}, limits: {{usd_per_day: 0}}}}",
    "a limit with leading zeros": f"keys:\n- {{name: a, digest: {A}, limits: {{usd_per_day: 07}}}}",
    "half a request": f"keys:\n- {{name: a, digest: {A}, limits: {{requests_per_minute: 1.5}}}}",
    "too many requests": f"keys:\n- {{name: a, digest: {A}, limits: {{requests_per_minute: 1000000000001}}}}",
    "a limit in words": f"keys:\n- {{name: a, digest: {A}, limits: {{usd_per_day: ten}}}}",
    "uneven lines": f"keys:\n- name: a\n  digest: {A}\n  models:\n  - a\n    - b",
    "uneven limits": f"keys:\n- name: a\n  digest: {A}\n  limits:\n    usd_per_day: 1\n     usd_per_month: 1",
    "a field set in": f"keys:\n- name: a\n   digest: {A}",
    "a comment behind": f"keys:\n- name: a # b\n  digest: {A}",
    "a line break of Unicode in a comment": f"# a\u2028keys: []\nkeys:\n- {{name: a, digest: {A}}}",
    "a carriage return in a comment": f"# a\rkeys: []\nkeys:\n- {{name: a, digest: {A}}}",
    "more than keys": f"keys:\n- {{name: a, digest: {A}}}\nmore: 1",
    "another document": f"keys:\n- {{name: a, digest: {A}}}\n---\nkeys: []",
    "no such day": f"keys:\n- {{name: a, digest: {A}, expires: 2027-02-30T00:00:00Z}}",
    "a time without an offset": f"keys:\n- {{name: a, digest: {A}, expires: 2027-02-20T00:00:00}}",
    "an escape": f'keys:\n- {{name: "\\x61", digest: {A}}}',
    "a trailing comma": f"keys:\n- {{name: a, digest: {A}, }}",
}


@pytest.mark.parametrize("text", DOUBTFUL.values(), ids=DOUBTFUL)
def test_where_there_is_doubt_the_exact_reader_decides(text: str) -> None:
    assert keysyaml.parse(text) is None


PIECES = st.sampled_from(
    [
        *("name: a", "name: 'b'", 'name: "c:d"', "name: e:f", "name: no", "name: ~", "name: 1e5", "name: a b"),
        *(
            f"digest: {A}",
            f'digest: "{B}"',
            "digest: sha256:00",
            "disabled: true",
            "disabled: yes",
            "smart_routing: false",
        ),
        *("models: [a, 'b*']", "models: []", "models: [a,b]", "models: [a, a]", "models:", "- a", "- 'b*'", "- *c"),
        *(
            "limits: {usd_per_day: 1.5}",
            "limits: {}",
            "limits:",
            "usd_per_day: 01",
            "usd_per_month: 2",
            "usd_per_day: 1_0",
        ),
        *("expires: 2027-01-01T00:00:00Z", "expires: '2027-01-01T00:00:00+02:00'", "expires: 2027-01-01 00:00:00Z"),
        *("# c", "", "x: y", "'name': a", "name : a", "requests_per_minute: 5.0", "tokens_per_minute: 7"),
    ]
)
SPACES = st.sampled_from(["", " ", "  ", "   ", "    ", "- ", "  - ", "-  "])


@given(st.lists(st.tuples(SPACES, PIECES), max_size=7), st.sampled_from(["\n", "\r\n"]))
@settings(max_examples=400, deadline=None)
def test_it_is_never_of_another_mind_in_lines(lines: list[tuple[str, str]], newline: str) -> None:
    agree(newline.join(["keys:", *(space + piece for space, piece in lines)]))


@given(st.lists(st.lists(PIECES, max_size=4), min_size=1, max_size=3), st.sampled_from([", ", ",", " , ", ",  "]))
@settings(max_examples=400, deadline=None)
def test_it_is_never_of_another_mind_in_braces(entries: list[list[str]], comma: str) -> None:
    agree("keys:\n" + "\n".join(f"- {{{comma.join(pieces)}}}" for pieces in entries))


@given(st.data())
@settings(max_examples=400, deadline=None)
def test_it_is_never_of_another_mind_after_a_slip_of_the_pen(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(list(SHAPES.values())))
    place = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 2))
    agree(text[:place] + data.draw(st.text("ab1 :-#'\"*[]{},\n\t\u2028", max_size=2)) + text[place + cut :])


def agree(text: str) -> None:
    """Where the fast way gives keys, the exact reader gives the same."""
    keys = keysyaml.parse(text)
    if keys is not None:
        try:
            exact = keysfile._exactly(text)
        except SettingsError as error:
            raise AssertionError(f"{error} in {text!r}") from error
        assert exact == keys, text
