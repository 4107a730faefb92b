import datetime as dt
import decimal
import hashlib
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zurelay import keysfile
from zurelay.keysedit import KeysEditError, Rules, entry, new_key, revoke
from zurelay.model import UsageLimits
from zurelay.problems import SettingsError

A, B = "a" * 64, "b" * 64
DIGIT = re.compile(r"zk_[0-9A-Za-z]{43}")


@pytest.mark.parametrize(
    ("secret", "key"),
    [
        pytest.param(bytes(32), "zk_" + "0" * 43, id="the least"),
        pytest.param(bytes(31) + b"\x3d", "zk_" + "0" * 42 + "z", id="one digit"),
        pytest.param(bytes(31) + b"\x3e", "zk_" + "0" * 41 + "10", id="two digits"),
    ],
)
def test_a_key_is_its_bytes_in_base_62(secret: bytes, key: str) -> None:
    assert new_key(secret) == key


@given(st.binary(min_size=32, max_size=32))
def test_every_key_has_the_same_length(secret: bytes) -> None:
    assert DIGIT.fullmatch(new_key(secret))


@pytest.mark.parametrize("name", ["team-a", "true", "no", "123", "1e3", "a:b", "Team.A", "x@y", "null"])
def test_an_entry_reads_back(name: str) -> None:
    rules = Rules(
        models=("zurelay-auto", "claude-*", "gpt-[56]"),
        smart_routing=False,
        limits=UsageLimits(requests_per_minute=600, usd_per_day=decimal.Decimal("0.50")),
        expires=dt.datetime(2027, 1, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2))),
    )

    (key,) = keysfile.parse(f"keys:\n{entry(name, 'zk_x', rules)}\n")

    assert (key.name, key.digest) == (name, hashlib.sha256(b"zk_x").digest())
    assert (key.models, key.smart_routing, key.disabled) == (rules.models, False, False)
    assert key.limits == rules.limits
    assert key.expires == rules.expires


def test_an_entry_without_rules_is_short() -> None:
    digest = hashlib.sha256(b"zk_x").hexdigest()

    assert entry("team", "zk_x", Rules()) == f'- {{name: team, digest: "sha256:{digest}"}}'


FLOW = f"""# all of them
keys:
  - {{name: a, digest: "sha256:{A}"}}   # the first
  - {{name: b, digest: "sha256:{B}", models: [x]}}
"""
BLOCK = f"""keys:
- name: a   # the first
  digest: sha256:{A}

-   digest: 'sha256:{B}'
    name: "b"
    limits: {{requests_per_minute: 1}}
"""
SWITCHED = f"""keys:
  - {{name: a, digest: "sha256:{A}", disabled: false}}
  - name: b
    disabled: False # not yet
    digest: "sha256:{B}"
"""
LINE = f'keys: [{{name: a, digest: "sha256:{A}"}}, {{digest: "sha256:{B}", name: b}}]'


@pytest.mark.parametrize(
    ("source", "name", "old", "new"),
    [
        pytest.param(FLOW, "a", "name: a,", "name: a, disabled: true,", id="flow"),
        pytest.param(FLOW, "b", "name: b,", "name: b, disabled: true,", id="flow, the second"),
        pytest.param(BLOCK, "a", "# the first\n", "# the first\n  disabled: true\n", id="block, with a comment"),
        pytest.param(BLOCK, "b", 'name: "b"\n', 'name: "b"\n    disabled: true\n', id="block, deeper"),
        pytest.param(SWITCHED, "a", "disabled: false", "disabled: true", id="a switch that is there"),
        pytest.param(SWITCHED, "b", "disabled: False", "disabled: true", id="a switch in a block"),
        pytest.param(LINE, "b", "name: b}", "name: b, disabled: true}", id="one line without its end"),
        pytest.param(
            f"keys:\n- digest: sha256:{A}\n  name: a",
            "a",
            "name: a",
            "name: a\n  disabled: true",
            id="a block without its last line end",
        ),
        pytest.param(
            BLOCK.replace("\n", "\r\n"),
            "a",
            "# the first\r\n",
            "# the first\r\n  disabled: true\r\n",
            id="lines that end with CRLF",
        ),
        pytest.param(
            f"keys: [&x {{name: a, digest: 'sha256:{A}'}}]\n",
            "a",
            "name: a,",
            "name: a, disabled: true,",
            id="an anchor",
        ),
        pytest.param(
            f"# é 日本 🙂\nkeys: [{{name: a, digest: 'sha256:{A}'}}] # ü\n",
            "a",
            "name: a,",
            "name: a, disabled: true,",
            id="letters of several bytes before it",
        ),
    ],
)
def test_revoking_changes_that_key_and_nothing_else(source: str, name: str, old: str, new: str) -> None:
    changed = revoke(source, name)

    assert source.count(old) == 1
    assert changed == source.replace(old, new)
    assert {key.name for key in keysfile.parse(changed) if key.disabled} == {name}


def test_what_is_revoked_stays_as_it_is() -> None:
    source = revoke(FLOW, "a")

    assert revoke(source, "a") == source


def test_a_key_that_is_not_there_is_named() -> None:
    with pytest.raises(KeysEditError, match="There is no key 'c' in the file"):
        revoke(FLOW, "c")


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(f"x: &x {{name: a, digest: 'sha256:{A}'}}\nkeys: [*x]\n", id="not a file of keys"),
        pytest.param("keys: [", id="not YAML"),
    ],
)
def test_a_file_with_problems_is_not_touched(source: str) -> None:
    with pytest.raises(SettingsError):
        revoke(source, "a")


def test_an_entry_that_can_not_be_changed_safely_is_left_to_its_owner() -> None:
    source = f"keys:\n- &x {{name: a, digest: 'sha256:{A}'}}\n- {{<<: *x, name: b, digest: 'sha256:{B}'}}\n"
    assert [key.name for key in keysfile.parse(source)] == ["a", "b"]

    with pytest.raises(KeysEditError, match="put `disabled: true` in by hand"):
        revoke(source, "a")


names = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=6, unique=True)


@given(names, st.data())
def test_revoking_reads_back_whatever_the_style(found: list[str], data: Any) -> None:
    lines = ["keys:"]
    for number, name in enumerate(found):
        digest = f"{number:064x}"
        if data.draw(st.booleans()):
            lines.append(f'  - {{name: {name}, digest: "sha256:{digest}"}}')
        else:
            lines += [f"  - digest: sha256:{digest}", f"    name: {name} # {name}", ""]
    source = "\n".join(lines) + data.draw(st.sampled_from(["", "\n", "\n# end"]))
    name = data.draw(st.sampled_from(found))

    changed = keysfile.parse(revoke(source, name))

    assert [(key.name, key.disabled) for key in changed] == [(each, each == name) for each in found]
