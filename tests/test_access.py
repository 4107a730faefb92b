"""Keys: where they may stand, whom they let in, and what they allow."""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from making import key, model
from zurelay import access
from zurelay.access import Caller, KeyRing
from zurelay.errors import Forbidden, Unauthenticated
from zurelay.identity import Workload
from zurelay.model import AUTO_ID, Key, Require

SECRET = "zk_" + "a" * 43
OTHER = "zk_" + "b" * 43
NOW = dt.datetime(2026, 6, 1, tzinfo=dt.UTC)


def digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def ring(*keys: Key, require: Require = Require.KEY) -> KeyRing:
    return KeyRing(keys or (key(digest=digest(SECRET)),), require)


PRESENTED = {
    "a bearer": ({"authorization": f"Bearer {SECRET}"}, SECRET),
    "a bearer in small letters": ({"authorization": f"bearer {SECRET}"}, SECRET),
    "a bearer in capitals": ({"authorization": f"BEARER {SECRET}"}, SECRET),
    "a bearer with spaces": ({"authorization": f"  Bearer   {SECRET}  "}, SECRET),
    "x-api-key": ({"x-api-key": SECRET}, SECRET),
    "x-api-key with spaces": ({"x-api-key": f" {SECRET} "}, SECRET),
    "the same in both": ({"authorization": f"Bearer {SECRET}", "x-api-key": SECRET}, SECRET),
    "another's bearer beside ours": ({"authorization": "Bearer junk", "x-api-key": SECRET}, SECRET),
    "another's x-api-key beside ours": ({"authorization": f"Bearer {SECRET}", "x-api-key": "sk-ant-junk"}, SECRET),
    "none of ours: the bearer": ({"authorization": "Bearer junk", "x-api-key": "other"}, "junk"),
    "another scheme beside x-api-key": ({"authorization": "Basic dXNlcjpwYXNz", "x-api-key": SECRET}, SECRET),
    "an empty bearer beside x-api-key": ({"authorization": "Bearer ", "x-api-key": SECRET}, SECRET),
    "the key without a scheme": ({"authorization": SECRET}, None),
    "another scheme": ({"authorization": f"Basic {SECRET}"}, None),
    "an empty bearer": ({"authorization": "Bearer"}, None),
    "an empty x-api-key": ({"x-api-key": "  "}, None),
    "Azure's header": ({"api-key": SECRET}, None),
    "a cookie": ({"cookie": f"key={SECRET}"}, None),
    "nothing": ({}, None),
}


@pytest.mark.parametrize(("headers", "expected"), [pytest.param(*row, id=name) for name, row in PRESENTED.items()])
def test_a_key_stands_in_one_of_two_headers(headers: dict[str, str], expected: str | None) -> None:
    assert expected == access.presented(headers)


@pytest.mark.parametrize("require", [Require.KEY, Require.EITHER])
def test_two_different_keys_are_refused_though_both_are_good(require: Require) -> None:
    known = ring(key(name="a", digest=digest(SECRET)), key(name="b", digest=digest(OTHER)), require=require)
    with pytest.raises(Unauthenticated, match="two different API keys") as caught:
        known.authenticate({"authorization": f"Bearer {SECRET}", "x-api-key": OTHER}, NOW, Workload("pay", "api"))
    assert (401, "invalid_api_key") == (caught.value.status, caught.value.code)


def test_a_known_key_is_its_caller() -> None:
    known = key(digest=digest(SECRET))
    assert Caller(key=known) == ring(known).authenticate({"x-api-key": SECRET}, NOW)


REFUSED = {
    "no key": ({}, "The request has no API key"),
    "an unknown key": ({"x-api-key": OTHER}, "This API key is unknown"),
    "a key cut short": ({"x-api-key": SECRET[:-1]}, "This API key is unknown"),
    "a key in other letters": ({"x-api-key": SECRET.upper()}, "This API key is unknown"),
    "the digest instead of the key": ({"x-api-key": digest(SECRET).hex()}, "This API key is unknown"),
    "two keys joined by Envoy": ({"x-api-key": f"{SECRET},{SECRET}"}, "This API key is unknown"),
    "bytes that aren't UTF-8": ({"x-api-key": "\udcff"}, "This API key is unknown"),
    "a very long key": ({"x-api-key": "x" * 60_000}, "This API key is unknown"),
}


@pytest.mark.parametrize(("headers", "says"), [pytest.param(*row, id=name) for name, row in REFUSED.items()])
def test_no_key_or_an_unknown_one_is_401(headers: dict[str, str], says: str) -> None:
    with pytest.raises(Unauthenticated) as caught:
        ring().authenticate(headers, NOW)
    error = caught.value
    assert (401, "invalid_api_key") == (error.status, error.code)
    assert error.message.startswith(says)


def test_a_refusal_never_repeats_the_key() -> None:
    for known in (key(digest=digest(SECRET), disabled=True), key(digest=digest(OTHER))):
        with pytest.raises(Unauthenticated) as caught:
            ring(known).authenticate({"x-api-key": SECRET}, NOW)
        assert SECRET not in caught.value.message


EXPIRY = {
    "a second before": (dt.timedelta(seconds=1), True),
    "at that moment": (dt.timedelta(0), False),
    "a second after": (dt.timedelta(seconds=-1), False),
}


@pytest.mark.parametrize(("left", "alive"), [pytest.param(*row, id=name) for name, row in EXPIRY.items()])
def test_a_key_ends_when_it_expires(left: dt.timedelta, *, alive: bool) -> None:
    known = ring(key(digest=digest(SECRET), expires=NOW + left))
    if alive:
        assert known.authenticate({"x-api-key": SECRET}, NOW).key is not None
        return
    with pytest.raises(Unauthenticated, match="has expired"):
        known.authenticate({"x-api-key": SECRET}, NOW)


def test_an_expiry_in_another_time_zone_is_the_same_moment() -> None:
    east = dt.timezone(dt.timedelta(hours=9))
    known = ring(key(digest=digest(SECRET), expires=dt.datetime(2026, 6, 1, 9, 0, 0, tzinfo=east)))
    with pytest.raises(Unauthenticated, match="has expired"):
        known.authenticate({"x-api-key": SECRET}, NOW)


def test_a_disabled_key_lets_nobody_in() -> None:
    with pytest.raises(Unauthenticated, match="is disabled"):
        ring(key(digest=digest(SECRET), disabled=True)).authenticate({"x-api-key": SECRET}, NOW)


def test_nobody_needs_a_key_where_none_is_required() -> None:
    for headers in ({}, {"x-api-key": OTHER}):
        assert Caller() == ring(require=Require.NONE).authenticate(headers, NOW)


def test_a_key_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return one == other

    monkeypatch.setattr(hmac, "compare_digest", compare)
    ring().authenticate({"x-api-key": SECRET}, NOW)
    assert [(digest(SECRET), digest(SECRET))] == compared


@given(st.text(alphabet=st.characters(codec="utf-8"), min_size=1, max_size=60))
def test_no_other_text_opens_the_ring(text: str) -> None:
    with pytest.raises(Unauthenticated):
        ring().authenticate({"x-api-key": text}, NOW)


MAY = {
    "no rule": (None, "gpt-6", True),
    "the id": (("gpt-6",), "gpt-6", True),
    "another id": (("gpt-6",), "gpt-6-sol", False),
    "a glob": (("claude-*",), "claude-opus-5-5", True),
    "a glob that doesn't match": (("claude-*",), "gpt-6", False),
    "one of several": (("claude-*", "gpt-?"), "gpt-6", True),
    "letters have a case": (("GPT-6",), "gpt-6", False),
    "an empty list": ((), "gpt-6", False),
    "everything": (("*",), "meta/llama:70b", True),
}


@pytest.mark.parametrize(("globs", "name", "expected"), [pytest.param(*row, id=name) for name, row in MAY.items()])
def test_a_keys_globs_say_what_it_may_use(globs: tuple[str, ...] | None, name: str, *, expected: bool) -> None:
    caller = Caller(key=key(models=globs))
    assert expected is caller.may_use(name)
    if expected:
        caller.demand(model(name))
        return
    with pytest.raises(Forbidden) as caught:
        caller.demand(model(name))
    assert (403, "model_not_allowed", "model") == (caught.value.status, caught.value.code, caught.value.param)


def test_a_key_limited_to_auto_may_use_auto() -> None:
    assert Caller(key=key(models=(AUTO_ID,))).may_use_auto
    assert not Caller(key=key(models=("gpt-*",))).may_use_auto


def test_smart_routing_is_on_unless_the_key_says_otherwise() -> None:
    assert Caller().smart_routing
    assert Caller(key=key()).smart_routing
    assert not Caller(key=key(smart_routing=False)).smart_routing


class TestRequire:
    """Who may call, in the four values of auth.require."""

    RING_KEY = Key(name="a", digest=hashlib.sha256(b"zk_good").digest())
    WORKLOAD = Workload("pay", "api")

    @pytest.mark.parametrize(
        ("require", "secret", "proved", "outcome"),
        [
            (Require.KEY, "zk_good", True, ("a", True)),
            (Require.KEY, "zk_good", False, ("a", False)),
            (Require.KEY, None, True, None),
            (Require.WORKLOAD, "zk_good", False, None),
            (Require.WORKLOAD, None, True, (None, True)),
            (Require.WORKLOAD, "anything", True, (None, True)),
            (Require.EITHER, "zk_good", True, ("a", True)),
            (Require.EITHER, "zk_good", False, ("a", False)),
            (Require.EITHER, "unused", True, (None, True)),
            (Require.EITHER, None, True, (None, True)),
            (Require.EITHER, "zk_bad", True, None),
            (Require.EITHER, "unused", False, None),
            (Require.EITHER, None, False, None),
            (Require.NONE, "zk_bad", False, (None, False)),
            (Require.NONE, None, True, (None, True)),
        ],
    )
    def test_who_is_let_in_and_as_whom(
        self, require: Require, secret: str | None, proved: bool, outcome: tuple[str | None, bool] | None
    ) -> None:
        ring = KeyRing([self.RING_KEY], require)
        headers = {"x-api-key": secret} if secret is not None else {}
        workload = self.WORKLOAD if proved else None
        now = dt.datetime(2026, 11, 30, tzinfo=dt.UTC)
        if outcome is None:
            with pytest.raises(Unauthenticated):
                ring.authenticate(headers, now, workload)
            return
        caller = ring.authenticate(headers, now, workload)
        assert outcome == (caller.key.name if caller.key is not None else None, caller.workload is not None)
