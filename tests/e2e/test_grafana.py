"""The dashboard and the alert rules ask for what really comes out: every series, every label."""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from e2e.conftest import catalog
from e2e.harness import Gateway, Provider, ask, free_port, simulate, until
from e2e.keys import bearer, write_keys

GRAFANA = pathlib.Path(__file__).parents[2] / "docs" / "grafana"
_SELECTOR = re.compile(r"\b((?:zurelay|gen_ai|envoy)_\w+)(?:\{([^}]*)\})?")
_GROUPED = re.compile(r"\b(?:by|ignoring|on)\s*\(([^)]*)\)")
_WORDS = re.compile(r"^[\w\s(){}\[\]<>=!~+\-*/.,:\"|$]*$")


def dashboard() -> list[str]:
    """Every query of the dashboard."""
    panels = json.loads((GRAFANA / "dashboard.json").read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", ())]


def alerts() -> list[str]:
    """Every query of the alert rules."""
    groups = yaml.safe_load((GRAFANA / "alerts.yaml").read_text())["groups"]
    return [rule["expr"] for group in groups for rule in group["rules"]]


@pytest.fixture(scope="module", name="labels")
def _labels(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, set[str]]]:
    """The labels of every series that comes out after traffic of every kind."""
    directory = tmp_path_factory.mktemp("g")
    settings: dict[str, Any] = catalog(provider.port)
    for model in settings["models"].values():
        model["price"] = {"input": 1_000, "output": 1_000}
    rules = {"team": {"limits": {"usd_per_day": 1_000, "requests_per_minute": 6}}}
    settings |= {
        "auth": write_keys(directory, **rules),
        "auto": {"simple": ["solo"], "standard": ["trio"], "complex": ["spare"]},
        "policies": [{"name": "no-spare", "match": {}, "models": {"deny": ["spare"]}}],
        "streaming": {"open_after": "300ms", "keepalive": "200ms"},
        "telemetry": {"otlp": f"http://127.0.0.1:{free_port()}"},
        "workers": 1,
    }
    gateway = Gateway(directory, settings).wait_ready()

    def found() -> dict[str, set[str]]:
        text = httpx.get(gateway.status_url + "/metrics").text
        series: dict[str, set[str]] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                series.setdefault(sample.name, set()).update(sample.labels)
        return series

    try:
        faults = simulate(m1=["not-json", "ok"])
        gateway.chat(ask("trio", **faults), bearer("team"))
        gateway.chat(ask("trio", stream=True, **simulate(m1="slow-token:0.7")), bearer("team"))
        gateway.chat(ask("auto", "Hi"), bearer("team"))
        gateway.chat(ask("spare"), bearer("team"))
        gateway.chat(ask("trio", stream=True, **simulate(m1="late-error:2")), bearer("team"))
        for _ in range(6):
            gateway.chat(ask("solo"), bearer("team"))
        until(lambda: {"zurelay_limit_used_ratio", "zurelay_telemetry_dropped_total"} <= found().keys(), 60)
        yield found()
    finally:
        gateway.stop()


def asked(query: str) -> list[tuple[str, set[str]]]:
    """The series that a query asks for, with the labels that it picks them by."""
    found = []
    for name, picked in _SELECTOR.findall(query):
        found.append((name, set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", picked))))
    return found


QUERIES = {**{f"panel: {query}": query for query in dashboard()}, **{f"alert: {query}": query for query in alerts()}}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_a_query_asks_for_what_comes_out(labels: dict[str, set[str]], query: str) -> None:
    assert query.count("(") == query.count(")")
    assert _WORDS.match(query)
    series = [(name, picked) for name, picked in asked(query) if name in labels or not is_label(name, labels)]
    assert series
    grouped = {label.strip() for group in _GROUPED.findall(query) for label in group.split(",")}
    known: set[str] = set()
    for name, picked in series:
        assert name in labels, f"{name} doesn't come out"
        assert picked <= labels[name], f"{name} has no such labels"
        known |= labels[name]
    assert grouped <= known


def is_label(name: str, labels: dict[str, set[str]]) -> bool:
    """Whether a word of a query is a label's name, such as gen_ai_provider_name."""
    return any(name in each for each in labels.values())


def test_there_is_an_alert_for_each_thing_that_wakes_people() -> None:
    text = " ".join(alerts())
    for name in ("time_to_first_token", "fallbacks", "requests_total", "limit_used_ratio", "workers_alive"):
        assert name in text


def test_panels_have_their_own_places() -> None:
    panels = json.loads((GRAFANA / "dashboard.json").read_text())["panels"]
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]
    assert len(places) == len(set(places)) == len({panel["id"] for panel in panels})
