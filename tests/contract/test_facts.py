from typing import Any

import pytest

from contract.making import Account, given
from zurelay import contract
from zurelay.contract import facts


def test_doors_are_found_by_their_phase() -> None:
    found = Account(given()).envoy()

    assert [(door.name, door.phase) for door in found.doors] == [("ingress", "ingress"), ("egress", "egress")]
    assert found.version == "1.40.0"


def test_a_route_may_come_by_itself() -> None:
    account = Account(given())
    for number in (0, 1):
        config = account.manager(number).pop("route_config")
        account.routes.append({**config, "name": f"route-{number}"})
        account.manager(number)["rds"] = {"route_config_name": f"route-{number}"}

    assert contract.problems(account.wanted(), account.envoy()) == []


def test_static_and_default_chains_count_and_what_still_warms_up_does_not() -> None:
    account = Account(given())
    dump = account.dump()
    listeners = next(each for each in dump["configs"] if "dynamic_listeners" in each)
    ingress, egress, _ = account.listeners
    egress["default_filter_chain"] = egress.pop("filter_chains")[0]
    listeners["static_listeners"] = [{"listener": ingress}]
    listeners["dynamic_listeners"] = [
        {"active_state": {"listener": egress}, "warming_state": {"listener": ingress}},
        {"warming_state": {"listener": ingress}},
    ]

    found = contract.envoy(account.server_info, account.runtime, dump)

    assert [door.phase for door in found.doors] == ["ingress", "egress"]


def test_processors_of_others_are_none_of_ours() -> None:
    account = Account(given())
    account.processor(0)["grpc_service"]["initial_metadata"] = [{"key": "tenant", "value": "a"}]

    assert [door.phase for door in account.envoy().doors] == ["egress"]


@pytest.mark.parametrize(
    "answers",
    [
        ({}, {"entries": {}}, {"configs": []}),
        ({"version": 1}, {"entries": {}}, {"configs": []}),
        ({"version": "1"}, [], {"configs": []}),
        ({"version": "1"}, {"entries": {}}, "no"),
        (None, None, None),
    ],
)
def test_what_is_no_envoy_is_told(answers: tuple[Any, Any, Any]) -> None:
    with pytest.raises(contract.NotEnvoyError, match="isn't an Envoy's admin interface"):
        contract.envoy(*answers)


@pytest.mark.parametrize(
    ("options", "speaks"),
    [
        ({"explicit_http_config": {"http2_protocol_options": {}}}, True),
        ({"explicit_http_config": {"http_protocol_options": {}}}, False),
        ({"auto_config": {}}, False),
        (None, False),
    ],
)
def test_http2_has_to_be_said(options: Any, speaks: bool) -> None:
    cluster = {"typed_extension_protocol_options": {facts._OPTIONS: options}} if options is not None else {}

    assert facts.speaks_http2(cluster) is speaks
