"""How many pods there are, where, and how many may go at once."""

from __future__ import annotations

from helm.charts import at, golden, merged, of_kind, pod, rendered, the

REDIS = at("store.redis.existingSecret.name", "r")
SCALED = merged(REDIS, at("autoscaling.enabled", True))


def test_a_number_of_pods_is_said_where_nothing_scales_them() -> None:
    assert the(rendered(), "Deployment")["spec"]["replicas"] == 1
    assert not of_kind(rendered(), "HorizontalPodAutoscaler")


def test_scaling_leaves_the_number_alone() -> None:
    found = rendered(SCALED)
    assert "replicas" not in the(found, "Deployment")["spec"]
    scaler = the(found, "HorizontalPodAutoscaler")["spec"]
    assert (scaler["minReplicas"], scaler["maxReplicas"]) == (2, 10)
    assert [metric["type"] for metric in scaler["metrics"]] == ["Resource"]
    assert scaler["scaleTargetRef"]["name"] == the(found, "Deployment")["metadata"]["name"]


def test_open_streams_can_count_too() -> None:
    _, streams = the(golden("high-availability"), "HorizontalPodAutoscaler")["spec"]["metrics"]
    assert streams["pods"] == {
        "metric": {
            "name": "envoy_http_downstream_rq_active",
            "selector": {"matchLabels": {"envoy_http_conn_manager_prefix": "ingress"}},
        },
        "target": {"type": "AverageValue", "averageValue": "400"},
    }


def test_evictions_are_bounded_from_two_pods_on() -> None:
    assert not of_kind(rendered(), "PodDisruptionBudget")
    assert not of_kind(rendered(SCALED, at("autoscaling.minReplicas", 1)), "PodDisruptionBudget")
    assert not of_kind(rendered(SCALED, at("podDisruptionBudget.enabled", False)), "PodDisruptionBudget")
    found = the(rendered(REDIS, at("replicaCount", 2)), "PodDisruptionBudget")["spec"]
    assert found["maxUnavailable"] == 1
    assert found["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    least = at("podDisruptionBudget", {"minAvailable": "50%", "maxUnavailable": None})
    assert the(rendered(SCALED, least), "PodDisruptionBudget")["spec"]["minAvailable"] == "50%"


def test_pods_are_spread_over_nodes_and_zones() -> None:
    spread = pod(golden("high-availability"))["topologySpreadConstraints"]
    assert {each["topologyKey"]: each["whenUnsatisfiable"] for each in spread} == {
        "kubernetes.io/hostname": "ScheduleAnyway",
        "topology.kubernetes.io/zone": "DoNotSchedule",
    }
    assert all(each["matchLabelKeys"] == ["pod-template-hash"] for each in spread)
    assert "topologySpreadConstraints" not in pod(rendered(at("topologySpread.enabled", False)))


def test_one_pod_at_a_time_has_a_claimed_file() -> None:
    found = rendered(at("store.sqlite.existingClaim", "spend"))
    assert the(found, "Deployment")["spec"]["strategy"] == {"type": "Recreate"}
    assert {"name": "data", "persistentVolumeClaim": {"claimName": "spend"}} in pod(found)["volumes"]


def test_an_upgrade_takes_no_pod_away_before_another_is_there() -> None:
    strategy = the(rendered(), "Deployment")["spec"]["strategy"]
    assert strategy == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
