"""An Envoy's account of itself as it is when all is well, made from what we write."""

from __future__ import annotations

import json
from typing import Any

from envoy_testbed import key, provider, runtime, settings
from zurelay import contract, envoy
from zurelay.model import Settings

ADMIN = "type.googleapis.com/envoy.admin.v3"
FLAG = "envoy.reloadable_features.grpc_side_stream_flow_control"


def given() -> Settings:
    """Two providers, one of them by TLS, each with a credential and a route."""
    return settings(
        provider("p", "http://127.0.0.1:8000/v1", api_key=key("p")),
        provider("q", "https://api.example:443/v1", headers={"x-team": "a"}),
    )


class Account:
    """The three answers of an admin interface; a test changes what it likes."""

    def __init__(self, found: Settings) -> None:
        boot = json.loads(envoy.bootstrap(runtime()))
        self.settings = found
        self.server_info: dict[str, Any] = {"version": "0123abcd/1.40.0/Clean/RELEASE/BoringSSL"}
        self.runtime: dict[str, Any] = {"entries": {FLAG: {"layer_values": ["false"], "final_value": "false"}}}
        self.listeners: list[Any] = json.loads(envoy.listeners(found, runtime()))["resources"]
        self.clusters: list[Any] = json.loads(envoy.clusters(found, runtime()))["resources"]
        self.static_clusters: list[Any] = boot["static_resources"]["clusters"]
        self.routes: list[Any] = []

    def dump(self) -> dict[str, Any]:
        """Put together what /config_dump says."""
        listeners = [{"name": each["name"], "active_state": {"listener": each}} for each in self.listeners]
        clusters = {
            "static_clusters": [{"cluster": each} for each in self.static_clusters],
            "dynamic_active_clusters": [{"cluster": each} for each in self.clusters],
        }
        return {
            "configs": [
                {"@type": f"{ADMIN}.BootstrapConfigDump", "bootstrap": {}},
                {"@type": f"{ADMIN}.ClustersConfigDump", **clusters},
                {"@type": f"{ADMIN}.ListenersConfigDump", "dynamic_listeners": listeners},
                {
                    "@type": f"{ADMIN}.RoutesConfigDump",
                    "dynamic_route_configs": [{"route_config": each} for each in self.routes],
                },
            ]
        }

    def envoy(self) -> contract.Envoy:
        """Read it."""
        return contract.envoy(self.server_info, self.runtime, self.dump())

    def wanted(self) -> contract.Wanted:
        """What we would write."""
        fresh = Account(self.settings)
        return contract.Wanted.of(
            fresh.listeners, fresh.clusters, fresh.static_clusters[0], envoy.message_limit(self.settings.limits)
        )

    # What is changed most.

    def cluster(self, name: str) -> Any:
        """Find a cluster."""
        return next(each for each in [*self.static_clusters, *self.clusters] if each["name"] == name)

    def filter(self, cluster: str, number: int) -> Any:
        """Find the configuration of an upstream filter."""
        (options,) = self.cluster(cluster)["typed_extension_protocol_options"].values()
        return options["http_filters"][number]["typed_config"]

    def manager(self, number: int) -> Any:
        """Find the HTTP connection manager of a listener."""
        return self.listeners[number]["filter_chains"][0]["filters"][0]["typed_config"]

    def processor(self, number: int) -> Any:
        """Find a listener's external processor."""
        return self.manager(number)["http_filters"][0]["typed_config"]

    def route(self, number: int) -> Any:
        """Find the route of a listener."""
        return self.manager(number)["route_config"]["virtual_hosts"][0]["routes"][0]
