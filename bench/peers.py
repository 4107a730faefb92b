"""The peers: how `make bench-peers` installs them under bench/peers, and how each is started in front of the stub.

`python -m bench.peers` installs. Versions are pinned and nothing of a package runs while it is installed: this is other
people's code, taken for the comparison alone. They are started without our environment.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path

import msgspec

from bench.running import BenchError

HERE = Path(__file__).parent / "peers"
_VENV = HERE / "venv"
_GATEWAY = HERE / "node_modules" / "@portkey-ai" / "gateway" / "build" / "start-server.js"
_LITELLM = "litellm[proxy]==1.105.7"
_NPM = {
    "private": True,
    "dependencies": {"@portkey-ai/gateway": "1.15.2"},
    # From 1.14.2 on, the gateway's streamed answers are errors ("immutable"; Portkey-AI/gateway issue 1389).
    "overrides": {"@hono/node-server": "1.14.0"},
}

BARE = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
"""The environment of a peer."""


def litellm() -> str | None:
    """Find LiteLLM's proxy: ours, or one on the path."""
    ours = _VENV / "bin" / "litellm"
    return str(ours) if ours.is_file() else shutil.which("litellm")


def litellm_config(provider: str, model: str) -> str:
    """Write LiteLLM's configuration (docs.litellm.ai, proxy/configs): one model, no keys. JSON is YAML."""
    route = {"model": "openai/stub", "api_base": provider, "api_key": "none"}
    return msgspec.json.encode(
        {
            "model_list": [{"model_name": model, "litellm_params": route}],
            "litellm_settings": {"telemetry": False},
            "general_settings": {"dangerously_permit_weak_or_unset_master_key": True},
        }
    ).decode()


# Otherwise it asks GitHub for prices when it starts.
LITELLM_ENV = BARE | {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}


def portkey() -> list[str] | None:
    """Find Portkey's gateway and the node that runs it."""
    node = shutil.which("node")
    return [node, str(_GATEWAY)] if node is not None and _GATEWAY.is_file() else None


PORTKEY_ENV = BARE | {"NODE_ENV": "production"}


def portkey_headers(provider: str) -> dict[str, str]:
    """Give the headers by which a request tells Portkey its provider (the gateway's README)."""
    return {"x-portkey-provider": "openai", "x-portkey-custom-host": provider, "authorization": "Bearer none"}


async def install() -> None:
    """Install both; an npm that isn't there leaves Portkey out."""
    HERE.mkdir(exist_ok=True)
    (HERE / ".gitignore").write_text("*\n")
    await _run(sys.executable, "-m", "venv", str(_VENV))
    await _run(str(_VENV / "bin" / "pip"), "install", "--quiet", "--only-binary", ":all:", _LITELLM)
    if shutil.which("npm") is None:
        sys.stderr.write("There is no npm, so Portkey is left out: apt install npm\n")
        return
    (HERE / "package.json").write_bytes(msgspec.json.encode(_NPM))
    await _run("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(HERE))


async def _run(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(*command)
    if await process.wait():
        raise BenchError(f"{' '.join(command)} ended with status {process.returncode}")


if __name__ == "__main__":
    try:
        asyncio.run(install())
    except BenchError as error:
        sys.exit(str(error))
