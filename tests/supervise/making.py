"""Configurations for tests of the supervisor."""

from __future__ import annotations

from pathlib import Path

from zurelay.supervise.loading import Loaded, load


def text(models: str = "m", *, port: int = 8080, key: str | None = None, extra: str = "") -> str:
    """A configuration with these models, one letter each, on a provider of the same name; `key` names a variable."""
    secret = f", api_key: {{env: {key}}}" if key else ""
    providers = "".join(f'  {name}: {{base_url: "http://127.0.0.1:9/v1", format: openai{secret}}}\n' for name in models)
    catalog = "".join(
        f"  {name}: {{context_window: 1000, routes: [{{provider: {name}, model: {name}}}]}}\n" for name in models
    )
    listen = f"listen: {{port: {port}}}\nauth: {{require: none}}\n"
    return f"{listen}providers:\n{providers}models:\n{catalog}{extra}"


def loaded(directory: Path, models: str = "m", *, port: int = 8080, key: str | None = None, extra: str = "") -> Loaded:
    """The same, read."""
    path = directory / "zurelay.yaml"
    path.write_text(text(models, port=port, key=key, extra=extra))
    return load(path, {"A_KEY": "a", "B_KEY": "b"})
