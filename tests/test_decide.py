"""The decision: from who asks for what to the ordered attempts."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from making import HELLO, body, catalog, facts, key, model, request
from zurelay.access import Caller
from zurelay.catalog import Catalog
from zurelay.decide import Decision, decide
from zurelay.errors import Forbidden, InvalidRequest, NotFound
from zurelay.model import Auto, Effort, Endpoint, Feature, Format, Input, Match, Names, Params, Policy, Timeouts
from zurelay.plan import MOST_ATTEMPTS
from zurelay.request import ChatRequest
from zurelay.rules import PolicyDenied, Rule, Rules
from zurelay.selection import LeftOut

FIRST = model("first", "one", "two", aliases=("one-alias",), fallbacks=("second",))
SECOND = model("second", "three", aliases=("two-alias",))
THIRD = model("third", "four")
ALL = catalog(FIRST, SECOND, THIRD)
OFF = Caller(key=key(smart_routing=False))
OWN = "first/one first/one first/two"
BOTH = OWN + " second/three second/three"


def decided(which: Catalog = ALL, known: dict[str, Any] | None = None, **fields: Any) -> Decision:
    return decide(which, request(**fields), facts(**(known or {})))


def clusters(decision: Decision) -> str:
    return " ".join(decision.plan.clusters)


ORDERS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "its routes, then its fallbacks": ({}, {}, BOTH),
    "an alias is its model": ({}, {"model": "one-alias"}, BOTH),
    "a model without fallbacks": ({}, {"model": "third"}, "third/four third/four"),
    "a list beats the fallbacks": ({}, {"models": ["third"]}, OWN + " third/four third/four"),
    "a list keeps its order": (
        {},
        {"models": ["third", "second"]},
        OWN + " third/four third/four second/three second/three",
    ),
    "a list of aliases": ({}, {"models": ["two-alias"]}, BOTH),
    "a list's repeats are skipped": ({}, {"models": ["second", "two-alias", "second"]}, BOTH),
    "the model itself in the list is skipped": ({}, {"models": ["first", "one-alias", "second"]}, BOTH),
    "an empty list": ({}, {"models": []}, OWN),
    "a list of null": ({}, {"models": None}, BOTH),
    "the header says off": ({"fallback": False}, {}, OWN),
    "the header says off, beside a list": ({"fallback": False}, {"models": ["second"]}, OWN),
    "the key says off": ({"caller": OFF}, {}, OWN),
    "the key says off, beside a list": ({"caller": OFF}, {"models": ["second"]}, OWN),
    "the header says on, the key off": ({"caller": OFF, "fallback": True}, {}, BOTH),
    "the header says off, the key on": ({"caller": Caller(key=key()), "fallback": False}, {}, OWN),
    "the first route is set aside": (
        {"set_aside": frozenset({"first/one"})},
        {"model": "first"},
        "first/two first/two second/three second/three",
    ),
    "another route is set aside": (
        {"set_aside": frozenset({"first/two"})},
        {},
        "first/one first/one second/three second/three",
    ),
    "all routes of a model are set aside: none is": ({"set_aside": frozenset({"first/one", "first/two"})}, {}, BOTH),
    "the only route is set aside: it isn't": ({"set_aside": frozenset({"second/three"})}, {}, BOTH),
    "another model's route says nothing": ({"set_aside": frozenset({"third/four"})}, {}, BOTH),
}


@pytest.mark.parametrize(("known", "fields", "expected"), [pytest.param(*row, id=name) for name, row in ORDERS.items()])
def test_the_order_of_the_attempts(known: dict[str, Any], fields: dict[str, Any], expected: str) -> None:
    assert expected == clusters(decided(known=known, **fields))


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], type[Exception], str, str]] = {
    "an unknown model": ({}, {"model": "frist"}, NotFound, "model_not_found", "model"),
    "an unknown model in the list": ({}, {"models": ["second", "nope"]}, NotFound, "model_not_found", "models"),
    "an unknown model in a list that counts for nothing": (
        {"fallback": False},
        {"models": ["nope"]},
        NotFound,
        "model_not_found",
        "models",
    ),
    "Auto in the list": ({}, {"models": ["zurelay-auto"]}, InvalidRequest, "invalid_request", "models"),
    "Auto in the list, by its short name": ({}, {"models": ["auto"]}, InvalidRequest, "invalid_request", "models"),
    "a model that the key may not use": (
        {"caller": Caller(key=key(models=("second",)))},
        {},
        Forbidden,
        "model_not_allowed",
        "model",
    ),
    "an alias of a model that the key may not use": (
        {"caller": Caller(key=key(models=("one-alias",)))},
        {"model": "one-alias"},
        Forbidden,
        "model_not_allowed",
        "model",
    ),
    "a word that is no level": (
        {},
        {"reasoning_effort": "much"},
        InvalidRequest,
        "invalid_reasoning_effort",
        "reasoning_effort",
    ),
}


@pytest.mark.parametrize(
    ("known", "fields", "kind", "code", "param"), [pytest.param(*row, id=name) for name, row in REFUSED.items()]
)
def test_what_is_refused(
    known: dict[str, Any], fields: dict[str, Any], kind: type[Exception], code: str, param: str
) -> None:
    with pytest.raises(kind) as caught:
        decided(known=known, **fields)
    error: Any = caught.value
    assert (code, param) == (error.code, error.param)


def test_a_404_names_only_what_the_key_may_use() -> None:
    with pytest.raises(NotFound) as caught:
        decided(known={"caller": Caller(key=key(models=("third",)))}, model="secont")
    assert "second" not in caught.value.message


IMAGE = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}]}]
AUDIO = [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}]}]
SCHEMA = {"type": "json_schema", "json_schema": {"name": "s", "schema": {}}}
TOOLS = [{"type": "function", "function": {"name": "f"}}]
LEFT_OUT: dict[str, tuple[dict[str, Any], dict[str, Any], str | None]] = {
    "it reads the image": ({"inputs": frozenset({Input.TEXT, Input.IMAGE})}, {"messages": IMAGE}, None),
    "it reads no image": ({}, {"messages": IMAGE}, "it does not read image"),
    "it reads neither": ({}, {"messages": IMAGE + AUDIO}, "it does not read audio, image"),
    "it has tools": ({}, {"tools": TOOLS}, None),
    "it lacks tools": ({"features": frozenset({Feature.JSON_SCHEMA})}, {"tools": TOOLS}, "it lacks tools"),
    "it lacks json_schema": (
        {"features": frozenset({Feature.TOOLS})},
        {"response_format": SCHEMA},
        "it lacks json_schema",
    ),
    "it lacks both": (
        {"features": frozenset()},
        {"response_format": SCHEMA, "tools": TOOLS},
        "it lacks json_schema, tools",
    ),
    "it lacks what isn't used": ({"features": frozenset()}, {"response_format": {"type": "json_object"}}, None),
}


@pytest.mark.parametrize(("second", "fields", "why"), [pytest.param(*row, id=name) for name, row in LEFT_OUT.items()])
def test_a_model_that_cannot_take_the_request_is_left_out(
    second: dict[str, Any], fields: dict[str, Any], why: str | None
) -> None:
    decision = decided(catalog(FIRST, model("second", "three", **second)), **fields)
    assert (BOTH if why is None else OWN) == clusters(decision)
    assert (() if why is None else (LeftOut("second", why),)) == decision.left_out


def test_a_model_that_the_key_may_not_use_is_left_out() -> None:
    decision = decided(known={"caller": Caller(key=key(models=("first", "third")))}, models=["second", "third"])
    assert OWN + " third/four third/four" == clusters(decision)
    assert (LeftOut("second", "the key may not use it"),) == decision.left_out


@pytest.mark.parametrize(("spare", "fits"), [(1, True), (0, True), (-1, False)])
@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_a_window_holds_the_prompt_and_what_may_be_written(field: str, spare: int, *, fits: bool) -> None:
    needed = request().tokens + 500
    small = model("second", "three", context_window=needed + spare)
    limit: dict[str, Any] = {field: 500}
    decision = decided(catalog(FIRST, small), **limit)
    assert fits is (clusters(decision) == BOTH)
    if not fits:
        why = f"its window of {needed + spare} tokens is smaller than the {needed} needed"
        assert (LeftOut("second", why),) == decision.left_out


def test_the_named_model_is_never_left_out() -> None:
    narrow = model("first", context_window=1, features=frozenset())
    decision = decided(catalog(narrow), messages=IMAGE, tools=TOOLS, max_tokens=100)
    assert "first/one first/one" == clusters(decision)


DROPS = Params(drop=("stop", "temperature"))
PARAMETERS: dict[str, tuple[dict[str, Params], Params, dict[str, Any], str]] = {
    "nothing that it refuses": ({}, DROPS, {"top_p": 1}, OWN),
    "a field of null is left out": ({}, DROPS, {"stop": None}, OWN),
    "one route takes it": ({"one": DROPS}, Params(), {"stop": "x"}, "first/two first/two"),
    "the other route takes it": ({"two": DROPS}, Params(), {"stop": "x"}, "first/one first/one"),
    "a rename covers it": ({}, Params(rename={"stop": "stops"}, drop=("stop",)), {"stop": "x"}, OWN),
    "a rename is no refusal": ({}, Params(rename={"max_tokens": "max_completion_tokens"}), {"max_tokens": 5}, OWN),
}


@pytest.mark.parametrize(
    ("providers", "own", "fields", "expected"), [pytest.param(*row, id=name) for name, row in PARAMETERS.items()]
)
def test_a_named_model_goes_by_routes_that_take_every_field(
    providers: dict[str, Params], own: Params, fields: dict[str, Any], expected: str
) -> None:
    named = model("first", "one", "two", params=own)
    assert expected == clusters(decided(catalog(named, params=providers), **fields))


REFUSING: dict[str, tuple[dict[str, Params], Params, dict[str, Any], str]] = {
    "the model refuses it": ({}, DROPS, {"stop": "x"}, "stop"),
    "it refuses two: the first is named": ({}, DROPS, {"temperature": 1, "stop": "x"}, "stop"),
    "both providers refuse it": ({"one": DROPS, "two": DROPS}, Params(), {"temperature": 0}, "temperature"),
    "no route takes all": (
        {"one": Params(drop=("stop",)), "two": Params(drop=("temperature",))},
        Params(),
        {"temperature": 0, "stop": "x"},
        "stop",
    ),
    "false and zero are values": ({}, Params(drop=("logprobs",)), {"logprobs": False}, "logprobs"),
}


@pytest.mark.parametrize(
    ("providers", "own", "fields", "field"), [pytest.param(*row, id=name) for name, row in REFUSING.items()]
)
def test_a_field_that_the_named_model_refuses_is_400_and_named(
    providers: dict[str, Params], own: Params, fields: dict[str, Any], field: str
) -> None:
    named = model("first", "one", "two", params=own)
    with pytest.raises(InvalidRequest) as caught:
        decided(catalog(named, params=providers), **fields)
    error = caught.value
    assert (400, "invalid_request", field) == (error.status, error.code, error.param)
    assert f"first does not take {field}: leave it out." == error.message


def test_a_field_that_another_model_refuses_is_dropped_there() -> None:
    decision = decided(catalog(FIRST, model("second", "three", params=DROPS)), stop="x")
    assert BOTH == clusters(decision)
    assert [((), True)] * 3 + [(DROPS.drop, False)] * 2 == [
        (attempt.drop, attempt.named) for attempt in decision.plan.attempts
    ]


def test_a_field_is_asked_of_a_ready_route_first_of_all() -> None:
    """The only route that takes the field is set aside: it is still the only one."""
    named = model("first", "one", "two")
    decision = decided(catalog(named, params={"two": DROPS}), {"set_aside": frozenset({"first/one"})}, stop="x")
    assert "first/one first/one" == clusters(decision)


LEVELS = catalog(
    model("first", levels="low medium HIGH", fallbacks=("second", "third")),
    model("second", "three", levels="none MAX"),
    model("third", "four"),
)
EFFORTS: dict[str, tuple[str | None, list[tuple[str | None, str | None]]]] = {
    "left out": (None, [(None, "high"), (None, "max"), (None, "none")]),
    "accepted": ("low", [("low", "low"), ("max", "max"), (None, "none")]),
    "clamped": ("xhigh", [("high", "high"), ("max", "max"), (None, "none")]),
    "none": ("none", [("low", "low"), ("none", "none"), (None, "none")]),
    "minimal": ("minimal", [("low", "low"), ("max", "max"), (None, "none")]),
}


@pytest.mark.parametrize(("word", "expected"), [pytest.param(*row, id=name) for name, row in EFFORTS.items()])
def test_each_attempt_clamps_for_its_own_model(word: str | None, expected: list[tuple[str | None, str | None]]) -> None:
    decision = decided(LEVELS, reasoning_effort=word)
    assert [each for each in expected for _ in range(2)] == [
        (attempt.effort, attempt.shown_effort) for attempt in decision.plan.attempts
    ]
    assert (Effort[word] if word else None) is decision.effort_asked


def test_a_word_that_is_no_level_is_400_though_the_model_has_none() -> None:
    with pytest.raises(InvalidRequest, match="third has no reasoning levels: leave the field out"):
        decided(model="third", reasoning_effort="much")


TIMES = Timeouts(first_token=1, first_token_high=2, whole=3, whole_high=4, total=5)


@pytest.mark.parametrize(
    ("word", "expected"),
    [(None, (1, 3, 5)), ("none", (1, 3, 5)), ("medium", (1, 3, 5)), ("high", (2, 4, 5)), ("max", (2, 4, 5))],
)
def test_the_times_go_by_the_effort_that_was_asked(word: str | None, expected: tuple[float, ...]) -> None:
    plan = decided(catalog(model("first", levels="low"), timeouts=TIMES), reasoning_effort=word).plan
    assert expected == (plan.first_token, plan.whole, plan.total)


def test_the_times_of_the_contract() -> None:
    usual, high = decided().plan, decided(reasoning_effort="high").plan
    assert (180, 240, 570, 300, 400) == (usual.first_token, usual.whole, usual.total, high.first_token, high.whole)


def test_an_attempt_carries_all_that_it_needs() -> None:
    this = model("first", "one", context_window=9_000, max_output=50, params=Params(rename={"a": "b"}, drop=("c",)))
    attempt = decided(catalog(this)).plan.attempts[0]
    assert (
        "first/one",
        "one",
        "first",
        "one-first",
        Format.OPENAI,
        "/v1/chat/completions",
        9_000,
        50,
        {"a": "b"},
        ("c",),
        True,
    ) == (
        attempt.cluster,
        attempt.provider,
        attempt.model,
        attempt.upstream,
        attempt.format,
        attempt.path,
        attempt.window,
        attempt.max_output,
        attempt.rename,
        attempt.drop,
        attempt.named,
    )


def test_a_plan_says_whose_it_is() -> None:
    plan = decided(known={"caller": Caller(key=key("team-a"))}, model="one-alias", stream=True).plan
    assert ("req_1", Endpoint.CHAT, "first", "team-a", True, 5) == (
        plan.request_id,
        plan.endpoint,
        plan.asked,
        plan.key,
        plan.stream,
        plan.length,
    )
    assert (None, False, ()) == (decided().plan.key, decided().plan.stream, decided().plan.past)


def test_what_was_decided_is_told() -> None:
    decision = decided(model="one-alias", reasoning_effort="low")
    assert ("first", Effort.low, ()) == (decision.asked, decision.effort_asked, decision.left_out)


def many(counts: list[int]) -> Catalog:
    names = [f"m{place}" for place in range(len(counts))]
    return catalog(
        *(
            model(
                "first" if place == 0 else name,
                *(f"p{route}" for route in range(counts[place])),
                fallbacks=tuple(names[1:]) if place == 0 else (),
            )
            for place, name in enumerate(names)
        )
    )


@given(st.lists(st.integers(1, 6), min_size=1, max_size=9))
def test_a_plan_never_has_more_than_twelve_attempts(counts: list[int]) -> None:
    plan = decided(many(counts)).plan
    assert MOST_ATTEMPTS == 12
    assert min(12, sum(count + 1 for count in counts)) == len(plan.attempts) == plan.length


@given(
    st.lists(st.sampled_from(["first", "one-alias", "second", "two-alias", "third"]), max_size=8),
    st.sampled_from([True, False, None]),
    st.booleans(),
    st.sets(st.sampled_from(["first/one", "first/two", "second/three", "third/four"])),
)
def test_laws_of_every_plan(models: list[str], fallback: bool | None, key_says: bool, aside: set[str]) -> None:
    known = {
        "caller": Caller(key=key(smart_routing=key_says)),
        "fallback": fallback,
        "set_aside": frozenset(aside),
    }
    plan = decided(known=known, models=models).plan
    assert plan.attempts[0].model == "first"
    assert plan.attempts[0].cluster == plan.attempts[1].cluster
    assert [attempt.named for attempt in plan.attempts] == [attempt.model == "first" for attempt in plan.attempts]
    others = plan.models[1:]
    allowed = (
        {ALL.find(name).id for name in models} - {"first"} if (key_says if fallback is None else fallback) else set()
    )
    assert allowed == set(others)
    for name in plan.models:
        tried = {attempt.cluster for attempt in plan.attempts if attempt.model == name}
        ready = {route.cluster for route in ALL.routes(ALL.find(name))} - aside
        assert tried == ready or not ready


def test_a_number_out_of_range_in_a_field_of_the_clients_is_no_hindrance() -> None:
    raw = body(messages=HELLO)[:-1] + b', "seed": 1e400}'
    assert BOTH == " ".join(decide(ALL, ChatRequest.parse(raw, Endpoint.CHAT), facts()).plan.clusters)


CLAUDE = model("claude", "claudes", messages=False)
MIXED = model("mixed", "claudes", "one", messages=True)
FORMATS = catalog(FIRST, CLAUDE, MIXED, SECOND)
CLAUDES = msgspec.structs.replace(FORMATS.settings.providers["claudes"], format=Format.ANTHROPIC)
BOTH_FORMATS = Catalog(
    msgspec.structs.replace(FORMATS.settings, providers={**FORMATS.settings.providers, "claudes": CLAUDES})
)
CANNOT = {
    "several answers: no Claude in another's place": (
        {"n": 2, "models": ["claude", "second"]},
        OWN + " second/three second/three",
    ),
    "one answer: a Claude too": ({"models": ["claude"]}, OWN + " claude/claudes claude/claudes"),
    "a seed is only dropped": ({"seed": 1, "models": ["claude"]}, OWN + " claude/claudes claude/claudes"),
    "the routes that can, in another's place": ({"n": 2, "models": ["mixed"]}, OWN + " mixed/one mixed/one"),
    "the routes that can, of the named": ({"model": "mixed", "n": 2}, "mixed/one mixed/one"),
    "of the named, a field is not dropped": ({"model": "mixed", "seed": 1}, "mixed/one mixed/one"),
    "all routes of the named": ({"model": "mixed"}, "mixed/claudes mixed/claudes mixed/one"),
    "the named one's only route: the attempt tells": ({"model": "claude", "n": 2}, "claude/claudes claude/claudes"),
}


@pytest.mark.parametrize(("fields", "expected"), CANNOT.values(), ids=CANNOT)
def test_routes_whose_format_cannot_say_the_request_are_left_out(fields: dict[str, Any], expected: str) -> None:
    assert expected == clusters(decided(BOTH_FORMATS, **fields))


def test_a_model_that_cannot_be_told_is_left_out_with_the_reason() -> None:
    (found,) = decided(BOTH_FORMATS, n=2, models=["claude"]).left_out
    assert ("claude", True) == (found.model, "`n`" in found.why)


def test_auto_leaves_out_what_cannot_be_told_and_refuses_where_none_is_left() -> None:
    def auto(*names: str) -> Catalog:
        return Catalog(
            msgspec.structs.replace(BOTH_FORMATS.settings, auto=Auto(simple=names, standard=names, complex=names))
        )

    assert "first/one first/one first/two" == clusters(decided(auto("claude", "first"), model="auto", n=2))
    with pytest.raises(InvalidRequest) as caught:
        decided(auto("claude"), model="auto", n=2)
    assert caught.value.param == "n"


HIDES: dict[str, tuple[Endpoint, dict[str, Any], bool]] = {
    "chat": (Endpoint.CHAT, {}, False),
    "messages": (Endpoint.MESSAGES, {}, True),
    "messages that think": (Endpoint.MESSAGES, {"thinking": {"type": "adaptive"}}, False),
    "messages with a budget": (Endpoint.MESSAGES, {"thinking": {"type": "enabled", "budget_tokens": 9}}, False),
    "messages that think unseen": (Endpoint.MESSAGES, {"thinking": {"type": "adaptive", "display": "omitted"}}, True),
}


@pytest.mark.parametrize(("endpoint", "fields", "hides"), HIDES.values(), ids=HIDES)
def test_reasoning_is_hidden_from_a_messages_client_that_asked_for_none(
    endpoint: Endpoint, fields: dict[str, Any], hides: bool
) -> None:
    asked = request(endpoint, model="mixed", max_tokens=9, **fields)
    assert hides is decide(BOTH_FORMATS, asked, facts()).plan.hide_thinking


def bound(**effects: Any) -> Rules:
    return Rules([Rule(Policy(name="p", match=Match(), **effects))])


class TestPolicies:
    """Policies on a request for a named model, and on Auto."""

    CATALOG = catalog(
        model("first", fallbacks=("second", "third")),
        model("second"),
        model("third", "two"),
        auto=Auto(simple=("first", "second"), standard=("third",), complex=("third",)),
    )

    def models(self, rules: Rules, asked: str = "first", **known: Any) -> list[str]:
        return decide(self.CATALOG, request(model=asked), facts(rules=rules, **known)).plan.models

    def test_fallbacks_that_a_policy_denies_are_left_out_and_told(self) -> None:
        denying = bound(models=Names(deny=("second",)))
        assert ["first", "third"] == self.models(denying)
        decision = decide(self.CATALOG, request(), facts(rules=denying))
        assert ["the policy p does not allow the model second"] == [one.why for one in decision.left_out]
        assert ["p"] == [finding.policy for finding in decision.findings]

    @pytest.mark.parametrize(
        ("said", "header", "models"),
        [
            (False, True, ["first"]),
            (True, False, ["first", "second", "third"]),
            (None, False, ["first"]),
        ],
    )
    def test_a_policy_beats_the_header(self, said: bool | None, header: bool, models: list[str]) -> None:
        assert models == self.models(bound(smart_routing=said), fallback=header)

    @pytest.mark.parametrize("effects", [{"models": Names(deny=("second",))}, {"providers": Names(deny=("one",))}])
    @pytest.mark.parametrize("fields", [{"model": "secont"}, {"models": ["secont"], "model": "third"}])
    def test_a_404_does_not_name_what_a_policy_denies(self, fields: dict[str, Any], effects: dict[str, Any]) -> None:
        with pytest.raises(NotFound) as caught:
            decide(self.CATALOG, request(**fields), facts(rules=bound(**effects)))
        assert "second" not in caught.value.message

    def test_auto_picks_among_what_is_left(self) -> None:
        assert ["second", "third"] == self.models(bound(models=Names(deny=("first",))), "auto")
        assert ["first", "second"] == self.models(bound(providers=Names(deny=("two",))), "auto")
        assert ["first", "second", "third"] == self.models(bound(models=Names(allow=("zurelay-auto",))), "auto")

    def test_what_leaves_nothing_is_a_403_that_names_the_policy(self) -> None:
        for asked, denied in (("first", "first"), ("auto", "zurelay-auto"), ("auto", "*")):
            with pytest.raises(PolicyDenied, match="The policy p does not allow"):
                self.models(bound(models=Names(deny=(denied,))), asked)
        with pytest.raises(PolicyDenied, match="provider one"):
            self.models(bound(providers=Names(deny=("*",))), "auto")
