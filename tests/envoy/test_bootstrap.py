import json
from typing import Any

import msgspec
import pytest

from envoy_testbed import runtime
from zurelay import envoy


@pytest.fixture(name="config")
def _config() -> Any:
    given = msgspec.structs.replace(
        runtime(), worker_sockets=("/run/zurelay/a", "/run/zurelay/b"), heap=123, connections=45
    )
    return json.loads(envoy.bootstrap(given))


def pipes(config: Any, name: str) -> list[str]:
    (cluster,) = (cluster for cluster in config["static_resources"]["clusters"] if cluster["name"] == name)
    (group,) = cluster["load_assignment"]["endpoints"]
    return [endpoint["endpoint"]["address"]["pipe"]["path"] for endpoint in group["lb_endpoints"]]


def test_the_admin_interface_is_a_unix_socket_that_only_its_user_opens(config: Any) -> None:
    assert config["admin"]["address"] == {"pipe": {"path": "/run/zurelay/admin.sock", "mode": 0o600}}


def test_every_worker_is_an_endpoint(config: Any) -> None:
    assert pipes(config, "sidecar") == ["/run/zurelay/a", "/run/zurelay/b"]
    assert pipes(config, "status") == ["/run/zurelay/status.sock"]


def test_listeners_and_clusters_are_watched_files(config: Any) -> None:
    sources = {name: source["path_config_source"] for name, source in config["dynamic_resources"].items()}

    assert sources == {
        "lds_config": {"path": "/run/zurelay/listeners.json", "watched_directory": {"path": "/run/zurelay"}},
        "cds_config": {"path": "/run/zurelay/clusters.json", "watched_directory": {"path": "/run/zurelay"}},
    }


def test_the_flag_that_crashes_envoy_is_off(config: Any) -> None:
    (layer,) = config["layered_runtime"]["layers"]

    assert layer["static_layer"]["envoy.reloadable_features.grpc_side_stream_flow_control"] is False


def test_memory_and_connections_are_bounded(config: Any) -> None:
    heap, connections = (monitor["typed_config"] for monitor in config["overload_manager"]["resource_monitors"])

    assert (heap["max_heap_size_bytes"], connections["max_active_downstream_connections"]) == (123, 45)


def test_nothing_is_left_to_be_set(config: Any) -> None:
    assert "SET" not in json.dumps(config)
