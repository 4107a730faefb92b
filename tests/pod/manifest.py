"""The chart's own pod, with the values of this test."""

from __future__ import annotations

from typing import Any

from helm.charts import config_text, rendered, the
from tools import helm

KEYS, PROVIDER = "keys-of-clients", "key-of-the-provider"
OLD = "1.28.0"  # the last without native sidecars, which podman doesn't know either
DRAIN_SECONDS = 30


class Manifest:
    """One render. `models` are the names that clients use, each with the provider's own."""

    def __init__(self, provider_port: int, models: dict[str, str]) -> None:
        provider = {
            "base_url": f"http://127.0.0.1:{provider_port}/v1",
            "format": "openai",
            "api_key": {"existingSecret": {"name": PROVIDER, "key": "api-key"}},
        }
        catalog = {
            name: {"context_window": 1000, "routes": [{"provider": "p", "model": upstream}]}
            for name, upstream in models.items()
        }
        values: dict[str, Any] = {
            "drainSeconds": DRAIN_SECONDS,
            "keys": {"existingSecret": {"name": KEYS}},
            "config": {"providers": {"openai": None, "p": provider}, "models": {"gpt-6-sol": None, **catalog}},
        }
        self._documents = rendered(values, version=OLD, major=helm.MAJORS[0])

    @property
    def deployment(self) -> dict[str, Any]:
        """The Deployment."""
        return the(self._documents, "Deployment")

    @property
    def config_map(self) -> dict[str, str]:
        """What is in its ConfigMap."""
        return {"zurelay.yaml": config_text(self._documents)}
