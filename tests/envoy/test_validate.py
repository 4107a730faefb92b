"""Envoy itself reads every variant of our configuration, in one process."""

import itertools
import json
import pathlib
import subprocess
from typing import Any

from envoy_testbed import binary, key, provider, runtime, settings
from zurelay import envoy
from zurelay.model import (
    Format,
    Http,
    Identity,
    IdentityMode,
    Limits,
    Listen,
    Model,
    Route,
    Secret,
    Settings,
    Timeouts,
    Tls,
)

ODD = "m/1#x:y é 100%"
MTLS = Identity(mode=IdentityMode.MTLS, ca="/ca.pem", cert="/cert.pem", key="/key.pem")
VARIANTS = {
    "plain": settings(provider("p", "http://127.0.0.1:8000/v1")),
    "providers": settings(
        provider("openai", "https://api.openai.example:443/v1", api_key=key("a")),
        provider(
            "anthropic", "https://api.anthropic.example:443/v1", format=Format.ANTHROPIC, api_key=Secret(file="/k")
        ),
        provider("azure", "https://x.azure.example:443/openai", auth_header="api-key", api_key=key("c")),
        provider("vllm", "http://vllm.models.svc:8000/v1", headers={"X-Team": "50%", "x-empty": ""}),
        provider("six", "https://[2001:db8::1]:8443/v1", http=Http.HTTP2),
        provider("h2c", "http://10.0.0.1:80", http=Http.HTTP2),
        provider("one", "https://one.example:443", http=Http.HTTP1),
    ),
    "odd names": settings(
        provider(ODD, "http://127.0.0.1:8000/v1", api_key=key("x")),
        models={ODD: Model(id=ODD, routes=(Route(name=ODD, provider=ODD, model="x"),), context_window=1)},
    ),
    "tls": settings(
        provider("p", "http://127.0.0.1:8000/v1"), listen=Listen(port=1, tls=Tls(cert="/cert.pem", key="/key.pem"))
    ),
    "mtls": settings(provider("p", "http://127.0.0.1:8000/v1"), identity=MTLS),
    "forwarded": settings(
        provider("p", "http://127.0.0.1:8000/v1"),
        identity=Identity(mode=IdentityMode.FORWARDED, trusted=("10.0.0.0/8",)),
    ),
    "extremes": settings(
        provider("p", "http://127.0.0.1:8000/v1"),
        listen=Listen(port=65535, host="::"),
        limits=Limits(request_body=1, response_body=1 << 30),
        timeouts=Timeouts(total=1e7, idle=0.5),
    ),
}


def resources(given: Settings, run: envoy.Runtime) -> list[Any]:
    texts = (envoy.listeners(given, run), envoy.clusters(given, run))
    return [resource for text in texts for resource in json.loads(text)["resources"]]


def test_envoy_takes_every_variant(tmp_path: pathlib.Path) -> None:
    run = runtime(str(tmp_path))
    config = json.loads(envoy.bootstrap(run))
    del config["dynamic_resources"]
    static = config["static_resources"]
    static["listeners"] = []
    ports = itertools.count(20000)
    for number, given in enumerate(VARIANTS.values()):
        for name, text in envoy.secrets(given).items():
            (tmp_path / name).write_text(text)
        for resource in resources(given, run):
            kind = resource.pop("@type").rpartition(".")[2]
            # Side by side in one Envoy, names and addresses must differ.
            resource["name"] = f"{number} {resource['name']}"
            if kind == "Listener":
                place = next(iter(resource["address"].values()))
                place.update({"path": f"{tmp_path}/{number}.sock"} if "path" in place else {"port_value": next(ports)})
            if kind == "Cluster" and "load_assignment" not in resource:
                listed = resource["cluster_type"]["typed_config"]["clusters"]
                listed[0] = f"{number} {listed[0]}"
            static["listeners" if kind == "Listener" else "clusters"].append(resource)
    file = tmp_path / "all.json"
    file.write_text(json.dumps(config))

    done = subprocess.run(
        [binary(), "--mode", "validate", "-c", str(file), "-l", "warning"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == f"configuration '{file}' OK\n"
    assert "deprecated" not in done.stderr.lower(), done.stderr
