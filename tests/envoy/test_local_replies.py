from typing import Any

from zurelay.envoy.local_replies import for_clients, for_relay
from zurelay.envoy.templates import template
from zurelay.errors import ZurelayError


def mappers() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = for_clients()["mappers"]
    return found


def test_the_sidecars_own_answers_come_first_and_are_left_alone() -> None:
    assert list(mappers()[0]) == ["filter"]


def test_every_kind_has_both_shapes_and_the_last_one_takes_all() -> None:
    table = template("local_replies.yaml")

    assert len(mappers()) == 1 + 2 * len(table["kinds"])
    assert table["kinds"][-1]["when"] == "response.code >= 400"
    assert "when" not in list(table["shapes"].values())[-1]


def test_types_are_those_of_the_error_tree() -> None:
    known = {(cls.code, cls.type, cls.anthropic_type) for cls in tree(ZurelayError)}
    known.add(("request_timeout", "invalid_request_error", "invalid_request_error"))  # Envoy's alone

    for kind in template("local_replies.yaml")["kinds"]:
        assert (kind["code"], kind["type"]["chat"], kind["type"]["messages"]) in known


def tree(cls: type[ZurelayError]) -> list[type[ZurelayError]]:
    return [cls] + [found for child in cls.__subclasses__() for found in tree(child)]


def test_every_body_is_json_in_the_shape_of_its_api() -> None:
    bodies = [mapper["body_format_override"] for mapper in mappers()[1:]]

    assert {body["content_type"] for body in bodies} == {"application/json"}
    assert {tuple(sorted(body["json_format"])) for body in bodies} == {("error",), ("error", "request_id", "type")}


def test_what_was_given_up_is_told_to_the_relay_alone() -> None:
    def told(replies: dict[str, Any]) -> set[str]:
        return {it["header"]["key"] for mapper in replies["mappers"][1:] for it in mapper["headers_to_add"]}

    assert {"x-zurelay-past"} == told(for_relay()) - told(for_clients())
    assert "x-ratelimit-remaining-tokens" in told(for_clients())
