import datetime as dt
from decimal import Decimal

import hypothesis
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zurelay import keysfile, settings
from zurelay.model import Key, Settings, UsageLimits
from zurelay.problems import Problem

A, B = "sha256:" + "a1" * 32, "sha256:" + "B2" * 32


def outcome(text: str) -> tuple[tuple[Key, ...] | None, tuple[Problem, ...]]:
    try:
        return keysfile.parse(text), ()
    except settings.SettingsError as error:
        return None, error.problems


FULL = f"""
keys:
- name: team-a
  digest: "{A}"
  models: [zurelay-auto, "claude-*", auto-*]
  smart_routing: false
  limits: {{requests_per_minute: 600, tokens_per_minute: 200000, usd_per_day: 50, usd_per_month: 1000.25}}
  expires: 2027-01-01T00:00:00Z
  disabled: true
- {{name: b, digest: "{B}", models: [auto], expires: 2027-01-01T01:00:00.5+01:00}}
"""


def problems(text: str) -> list[str]:
    with pytest.raises(settings.SettingsError) as caught:
        keysfile.parse(text)
    return [str(problem) for problem in caught.value.problems]


def test_keys_have_all_that_the_file_says() -> None:
    expected = (
        Key(
            name="team-a",
            digest=b"\xa1" * 32,
            models=("zurelay-auto", "claude-*", "auto-*"),
            smart_routing=False,
            limits=UsageLimits(
                requests_per_minute=600,
                tokens_per_minute=200_000,
                usd_per_day=Decimal(50),
                usd_per_month=Decimal("1000.25"),
            ),
            expires=dt.datetime(2027, 1, 1, tzinfo=dt.UTC),
            disabled=True,
        ),
        Key(
            name="b",
            digest=b"\xb2" * 32,
            models=("zurelay-auto",),
            expires=dt.datetime(2027, 1, 1, 0, 0, 0, 500_000, tzinfo=dt.UTC),
        ),
    )

    assert expected == keysfile.parse(FULL)


def test_a_key_needs_its_name_and_digest_only() -> None:
    assert (Key(name="a", digest=b"\xa1" * 32),) == keysfile.parse(f"keys: [{{name: a, digest: '{A}'}}]")


def test_no_keys_at_all_are_an_empty_list() -> None:
    assert keysfile.parse("keys: []") == ()


DIGEST = "expected sha256: and 64 hexadecimal digits, as `zurelay keys new` prints it"
EMPTY = "the file is empty; no keys at all are written keys: []"
WRONG = {
    "nothing": ("", [f"line 1: {EMPTY}"]),
    "a list": ("[]", ["line 1: expected a mapping, not a list"]),
    "no keys": ("{}", ["line 1: keys: missing; no keys at all are written keys: []"]),
    "null": ("keys:", ["line 1: keys: missing; no keys at all are written keys: []"]),
    "another section": ("keys: []\nkees: []", ["line 2: kees: unknown key; did you mean keys?"]),
    "a mapping": ("keys: {a: b}", ["line 1: keys: expected a list, not a mapping"]),
    "all is missing": (
        "keys: [{}]",
        ["line 1: keys[0].name: missing; it has no default", "line 1: keys[0].digest: missing; it has no default"],
    ),
    "the key itself": ("keys: [{name: a, digest: zk_secret}]", [f"line 1: keys[0].digest: {DIGEST}"]),
    "a short digest": (f"keys: [{{name: a, digest: '{A[:-1]}'}}]", [f"line 1: keys[0].digest: {DIGEST}"]),
    "a name with a space": (
        f"keys: [{{name: a b, digest: '{A}'}}]",
        ["line 1: keys[0].name: expected a name: 1 to 128 of A-Z a-z 0-9 . _ : / @ + -"],
    ),
    "a name twice": (
        f"keys:\n- {{name: a, digest: '{A}'}}\n- {{name: a, digest: '{B}'}}",
        ["line 3: keys[1].name: the key at line 2 has this name too"],
    ),
    "a digest twice": (
        f"keys:\n- {{name: a, digest: '{A}'}}\n- {{name: b, digest: '{A.upper().replace('SHA', 'sha')}'}}",
        ["line 3: keys[1].digest: the key at line 2 has this digest too"],
    ),
    "a key of a key twice": (
        f"keys:\n- name: a\n  digest: '{A}'\n  name: b",
        ["line 4: keys[0].name: said twice; first at line 2"],
    ),
    "no pattern": (
        f"keys: [{{name: a, digest: '{A}', models: [a b]}}]",
        [
            (
                "line 1: keys[0].models[0]: expected a name or a pattern of names:"
                " 1 to 128 of A-Z a-z 0-9 . _ : / @ + - * ? [ ] !"
            )
        ],
    ),
    "a model twice": (
        f"keys: [{{name: a, digest: '{A}', models: [auto, zurelay-auto]}}]",
        ["line 1: keys[0].models[1]: said twice in this list"],
    ),
    "a day": (
        f"keys: [{{name: a, digest: '{A}', expires: 2027-01-01}}]",
        ["line 1: keys[0].expires: expected a time with its offset, such as 2027-01-01T00:00:00Z"],
    ),
    "a limit of nothing": (
        f"keys: [{{name: a, digest: '{A}', limits: {{tokens_per_minute: 0}}}}]",
        ["line 1: keys[0].limits.tokens_per_minute: expected a whole number from 1 to 1000000000000"],
    ),
    "many at once": (
        (
            f"keys:\n- name: a\n  digst: '{A}'\n- name: b\n  digest: '{B}'\n  disabled: maybe\n- name: b\n"
            f"  digest: '{A}'\n"
        ),
        [
            "line 2: keys[0].digest: missing; it has no default",
            "line 3: keys[0].digst: unknown key; did you mean digest?",
            "line 6: keys[1].disabled: expected true or false, not text",
        ],
    ),
}


@pytest.mark.parametrize(("text", "expected"), WRONG.values(), ids=WRONG)
def test_every_problem_is_told_at_once_in_the_order_of_lines(text: str, expected: list[str]) -> None:
    assert expected == problems(text)


@hypothesis.settings(deadline=None)
@given(st.text() | st.text("keys: []{}-,\n'\"&*"))
def test_any_text_is_keys_or_problems(text: str) -> None:
    keys, told = outcome(text)

    assert (keys is None) == bool(told)


CATALOG = """
providers: {p: {base_url: "http://127.0.0.1:1", format: openai}}
models:
  claude-opus-5-5: {aliases: [opus], routes: [{provider: p, model: m}], context_window: 1000}
auth: {require: none}
"""


@pytest.fixture(name="catalog")
def catalog_fixture() -> Settings:
    """One model with an alias and no price."""
    return settings.parse(CATALOG, environ={}, readable=lambda _: False)


def test_aliases_in_a_key_become_ids(catalog: Settings) -> None:
    keys = (
        Key(name="a", digest=b"a", models=("opus", "claude-opus-5-5", "zurelay-auto", "gpt-*")),
        Key(name="b", digest=b"b"),
        Key(name="c", digest=b"c", models=()),
    )

    models = [key.models for key in keysfile.bind(keys, catalog)]

    assert models == [("claude-opus-5-5", "zurelay-auto", "gpt-*"), None, ()]


def test_binding_tells_every_unknown_model_and_missing_price(catalog: Settings) -> None:
    keys = (
        Key(name="a", digest=b"a", models=("opsu",), limits=UsageLimits(usd_per_day=Decimal(1))),
        Key(name="b", digest=b"b", models=("gpt-9", "claude-*")),
    )

    with pytest.raises(settings.SettingsError) as caught:
        keysfile.bind(keys, catalog)

    assert [str(problem) for problem in caught.value.problems] == [
        (
            "models.claude-opus-5-5.price: missing; the key a limits USD, and what isn't priced can't be counted"
            " (0 is a price too)"
        ),
        "keys.a.models: no model is called opsu; did you mean opus?",
        "keys.b.models: no model is called gpt-9",
    ]


def test_many_keys_as_yaml_and_as_json_are_the_same() -> None:
    entries = [{"name": f"team-{n}", "digest": f"sha256:{n:064x}", "models": ["claude-*"]} for n in range(200)]
    lines = "keys:\n" + "".join(f"- {msgspec.json.encode(entry).decode()}\n" for entry in entries)
    flow = lines.replace('"name":', "name: ")

    assert keysfile.parse(lines) == keysfile.parse(flow)
    assert len(keysfile.parse(lines)) == 200
