"""The configuration file: text in, Settings out, or all of its problems at once (SPEC 13).

Pure: the environment and a look at files are passed in. Paths stay as written; a shell resolves them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from zurelay import yamlnodes
from zurelay.model import Auth, Identity, Key, Listen, Settings
from zurelay.problems import Problem, SettingsError
from zurelay.settings import entry, models, names, policies, providers, running
from zurelay.settings.facts import Facts
from zurelay.settings.places import At, Broken, Found, Reader, mapped
from zurelay.yamlnodes import Items, Table

__all__ = ["Problem", "SettingsError", "parse", "unpriced"]

_UNSEEN = "true, but telemetry.capture_content needs to see what a stream says; leave one of the two out"
_UNPRICED = "missing; {} limits USD, and what isn't priced can't be counted (0 is a price too)"


def parse(text: str, *, environ: Mapping[str, str], readable: Callable[[str], bool]) -> Settings:
    """Read the file; raise SettingsError with every problem in it."""
    problems: list[Problem] = []
    node = yamlnodes.load(text, problems)
    if node is None:
        raise SettingsError(problems)
    root = At(node, 1, problems)
    try:
        return _settings(root, Facts(environ=environ, readable=readable, names=names.gather(root)))
    except Broken:
        raise SettingsError(problems) from None


def _settings(root: At, facts: Facts) -> Settings:
    if yamlnodes.is_null(root.node):
        raise root.wrong("the file is empty; it needs providers, models and auth")
    found = Found(root, _readers(facts))
    for name in ("providers", "models"):
        if not root.has(name) or _is_empty(root.key(name)):
            root.key(name).note(f"no {name}; at least one is needed")
    defaults = {
        "listen": Listen(port=entry.PUBLIC_PORT),
        "status": Listen(port=entry.STATUS_PORT),
        "auth": Auth(),
        "identity": Identity(),
    }
    whole = {name: found.values.get(name, None if root.has(name) else value) for name, value in defaults.items()}
    entry.check(root, whole["listen"], whole["status"], whole["auth"], whole["identity"])
    _check_prices(root)
    _check_passthrough(root, found.values)
    if root.problems:
        raise Broken
    return found.build(Settings, listen=whole["listen"], status=whole["status"])


def _is_empty(at: At) -> bool:
    return isinstance(at.node, Table) and not at.node.entries


def _readers(facts: Facts) -> dict[str, Reader[Any]]:
    return {
        "listen": lambda at: entry.listen(at, facts),
        "status": entry.status,
        "providers": mapped(lambda name, at: providers.provider(name, at, facts)),
        "models": mapped(lambda name, at: models.model(name, at, facts)),
        "auto": lambda at: models.auto(at, facts),
        "streaming": running.streaming,
        "timeouts": running.timeouts,
        "auth": lambda at: entry.auth(at, facts),
        "identity": lambda at: entry.identity(at, facts),
        "store": lambda at: running.store(at, facts),
        "workers": running.workers,
        "policies": lambda at: policies.policies(at, facts),
        "limits": running.limits,
        "telemetry": running.telemetry,
    }


def _check_prices(root: At) -> None:
    """Note models without a price while a policy limits USD."""
    rules = root.key("policies")
    limited = isinstance(rules.node, Items) and any(
        rule.key("limits").has(limit) for rule in rules.items() for limit in ("usd_per_day", "usd_per_month")
    )
    catalog = root.key("models")
    for _, at in catalog.entries() if limited and isinstance(catalog.node, Table) else ():
        if not at.has("price"):
            at.key("price").note(_UNPRICED.format("a policy"))


def _check_passthrough(root: At, found: Mapping[str, Any]) -> None:
    """Note streams that pass through while their content is to be captured: no one sees it."""
    telemetry, streaming = found.get("telemetry"), found.get("streaming")
    if telemetry is None or not telemetry.capture_content:
        return
    if streaming is not None and streaming.passthrough:
        root.key("streaming").key("passthrough").note(_UNSEEN)
    for name, model in found.get("models", {}).items():
        if model.passthrough:
            root.key("models").key(name).key("passthrough").note(_UNSEEN)


def unpriced(settings: Settings, keys: Iterable[Key]) -> tuple[Problem, ...]:
    """Find models without a price while a key limits USD; the keys are in a file of their own, so no line is known."""
    limited = next((key for key in keys if (key.limits.usd_per_day, key.limits.usd_per_month) != (None, None)), None)
    if limited is None:
        return ()
    message = _UNPRICED.format(f"the key {limited.name}")
    return tuple(
        Problem(0, f"models.{model.id}.price", message) for model in settings.models.values() if model.price is None
    )
