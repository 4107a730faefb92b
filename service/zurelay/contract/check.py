"""Compares an Envoy with what the sidecar needs of it: facts in, problems out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from zurelay.contract import tables
from zurelay.contract.facts import Door, Envoy, Wanted, filters, phase, processors, speaks_http2, typed
from zurelay.contract.rules import broken
from zurelay.contract.values import at, say

_VERSION = "1.40."
_FLAG = "envoy.reloadable_features.grpc_side_stream_flow_control"
_MUTATION = "envoy.extensions.filters.http.header_mutation.v3.HeaderMutation"
_CREDENTIAL = "envoy.extensions.filters.http.credential_injector.v3.CredentialInjector"
_LISTENER = {"ingress": tables.INGRESS, "egress": tables.EGRESS}


def problems(wanted: Wanted, found: Envoy) -> list[str]:
    """Name every difference that would break something; none is agreement."""
    return list(dict.fromkeys([*_binary(found), *_doors(wanted, found), *_clusters(wanted, found)]))


def _binary(found: Envoy) -> Iterator[str]:
    if not found.version.startswith(_VERSION):
        yield f"Envoy is {found.version}, must be {_VERSION}x: others treat the plan and its retries differently"
    if (value := found.runtime.get(_FLAG)) != "false":
        told = "unset" if value is None else value
        yield f"runtime: {_FLAG} is {told}, must be false (Envoy 1.40 crashes otherwise)"


def _doors(wanted: Wanted, found: Envoy) -> Iterator[str]:
    for door in wanted.doors:
        same = [other for other in found.doors if other.phase == door.phase]
        if not same:
            yield f"no listener has an ext_proc filter of ours with `phase: {door.phase}` in its initial metadata"
        for other in same:
            yield from _door(door, other, wanted.message_limit)
            yield from _sidecar(wanted, found, other)


def _door(wanted: Door, found: Door, message_limit: int) -> Iterator[str]:
    where = f"listener {found.name}"
    yield from broken(_LISTENER[wanted.phase], where, wanted.listener, found.listener)
    yield from broken(tables.MANAGER, where, wanted.manager, found.manager)
    yield from broken(tables.ENDS, where, wanted.ends, found.ends)
    yield from broken(tables.BESIDE, where, wanted.beside, found.beside)
    yield from broken(tables.PROCESSOR, f"{where}, ext_proc", wanted.processor, found.processor)
    if found.route is None:
        yield f"{where}: no route has the cluster specifier that goes by the sidecar's plan (priority_group)"
        return
    yield from broken(tables.HOST, f"{where}, virtual host", wanted.host, found.host)
    yield from broken(tables.ROUTE, f"{where}, route", wanted.route, found.route)
    buffer = at(found.route, "request_body_buffer_limit")
    if isinstance(buffer, int) and buffer > message_limit:
        yield f"{where}, route: request_body_buffer_limit is {buffer}, must be at most {message_limit} (the worker's)"


def _sidecar(wanted: Wanted, found: Envoy, door: Door) -> Iterator[str]:
    name = at(door.processor, "grpc_service.envoy_grpc.cluster_name")
    cluster = found.clusters.get(str(name))
    if cluster is None:
        yield f"cluster {name}: not there, and listener {door.name} asks the sidecar by it"
        return
    yield from broken(tables.SIDECAR, f"cluster {name}", wanted.sidecar, cluster)
    if not speaks_http2(cluster):
        yield f"cluster {name}: doesn't speak HTTP/2, which gRPC needs (explicit_http_config.http2_protocol_options)"


def _clusters(wanted: Wanted, found: Envoy) -> Iterator[str]:
    for name, cluster in wanted.clusters.items():
        other = found.clusters.get(name)
        if other is None:
            yield f"cluster {name}: not there; a plan that names it ends"
        elif filters(cluster):
            yield from _attempt(f"cluster {name}", cluster, other)
        else:
            yield from broken(tables.PROVIDER, f"cluster {name}", cluster, other)


def _attempt(where: str, wanted: Any, found: Any) -> Iterator[str]:
    yield from broken(tables.ATTEMPT, where, wanted, found)
    ours, theirs = filters(wanted), filters(found)
    for processor in processors(ours):
        same = next((each for each in processors(theirs) if phase(each) == phase(processor)), None)
        if same is None:
            yield f"{where}: no upstream ext_proc filter with `phase: {phase(processor)}` in its initial metadata"
        else:
            yield from broken(tables.PROCESSOR, f"{where}, ext_proc", processor, same)
    for kind, rules in ((_MUTATION, tables.MUTATION), (_CREDENTIAL, tables.CREDENTIAL)):
        want, have = (next((c for each in side if (c := typed(each, kind))), None) for side in (ours, theirs))
        if want is not None:
            yield from broken(rules, f"{where}, {kind.rpartition('.')[2]}", want, have)
        elif have is not None and kind == _CREDENTIAL:
            yield f"{where}: injects a credential, and the configuration names none for its provider"
    order = [each["name"] for each in theirs if any(each["name"] == one["name"] for one in ours)]
    if order != [each["name"] for each in ours]:
        yield f"{where}: its filters are {say(order)}, must be {say([each['name'] for each in ours])}, in this order"
