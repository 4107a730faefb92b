"""The names of a catalog, gathered before the rest is read, so that a broken model isn't taken for an unknown one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from zurelay import nearby
from zurelay.model import AUTO_ALIAS, AUTO_ID, Settings
from zurelay.problems import shown
from zurelay.settings.places import At, Broken, Reader
from zurelay.settings.scalars import matching, text
from zurelay.yamlnodes import Items, Scalar, Table

# Names end in headers, URLs, metrics and cluster names, so they are plain. A provider's has no slash: `MODEL/PROVIDER`
# names a route, and must be readable back in one way.
MODEL_NAME = r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}"
MODEL_WORDS = "1 to 128 of A-Z a-z 0-9 . _ : / @ + -, a letter or digit first"
PROVIDER_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
PROVIDER_WORDS = "1 to 64 of A-Z a-z 0-9 . _ -, a letter or digit first"
GLOB = r"[A-Za-z0-9._:/@+*?\[\]!-]{1,128}"
_RESERVED = frozenset({AUTO_ID, AUTO_ALIAS})

model_name = matching(MODEL_NAME, f"a model's name: {MODEL_WORDS}")
glob = matching(GLOB, "a name or a pattern of names: 1 to 128 of A-Z a-z 0-9 . _ : / @ + - * ? [ ] !")


class Names:
    """What there is to name: providers, model ids, and the id behind each alias."""

    __slots__ = ("_near_models", "aliases", "models", "providers")

    def __init__(self, providers: Iterable[str], models: Iterable[str], aliases: dict[str, str]) -> None:
        self.providers = frozenset(providers)
        self.models = frozenset(models)
        self.aliases = aliases
        self._near_models = nearby.NearNames([*models, *aliases])

    def provider(self, at: At) -> str:
        """Read the name of a provider that there is."""
        name = text(at)
        if name not in self.providers:
            meant = nearby.did_you_mean(nearby.near(name, sorted(self.providers)))
            raise at.wrong(f"no provider is called {shown(name)}{meant}")
        return name

    def model(self, at: At) -> str:
        """Read the id or an alias of a model that there is; give the id."""
        name = text(at)
        if name in _RESERVED:
            raise at.wrong(f"{name} picks among models and can't be one here; name models")
        return self._resolved(at, name)

    def model_glob(self, at: At) -> str:
        """Read a pattern of model ids, or the id, an alias, or Auto's name; a plain name must be there."""
        name = glob(at)
        if name in _RESERVED:
            return AUTO_ID
        return name if is_glob(name) else self._resolved(at, name)

    def provider_glob(self, at: At) -> str:
        """Read a pattern of providers; a plain name must be there."""
        name = glob(at)
        return name if is_glob(name) else self.provider(at)

    def _resolved(self, at: At, name: str) -> str:
        found = self.id_of(name)
        if found is None:
            raise at.wrong(self.no_model(name))
        return found

    def id_of(self, name: str) -> str | None:
        """Give the id behind an id or alias."""
        return name if name in self.models else self.aliases.get(name)

    def no_model(self, name: str) -> str:
        """Say that there is no such model, and which are near."""
        return f"no model is called {shown(name)}{nearby.did_you_mean(self._near_models.find(name))}"


def is_glob(name: str) -> bool:
    """Tell a pattern from a plain name."""
    return any(letter in name for letter in "*?[")


def of(settings: Settings) -> Names:
    """Give the names of settings that are read already."""
    aliases = {alias: model.id for model in settings.models.values() for alias in model.aliases}
    return Names(settings.providers, settings.models, aliases)


def gather(root: At) -> Names:
    """Collect the names; note those that are no names or are taken already."""
    providers = _keys(root, "providers", matching(PROVIDER_NAME, f"a provider's name: {PROVIDER_WORDS}"))
    models = _keys(root, "models", model_name)
    for name, at in models.items():
        if name in _RESERVED:
            at.note(f"{name} is zurelay's own name; call the model otherwise")
    aliases: dict[str, str] = {}
    for model, at in models.items():
        for alias in _aliases(at):
            _take(alias, model, models, aliases)
    return Names(providers, models, aliases)


def _keys(root: At, key: str, name: Reader[str]) -> dict[str, At]:
    """Give the entries of a section, noting keys that are no names."""
    at = root.key(key)
    if not root.has(key) or not isinstance(at.node, Table):
        return {}
    found = dict(at.entries())
    for word, child in found.items():
        with contextlib.suppress(Broken):
            name(child.of_key(word))
    return found


def _aliases(model: At) -> list[At]:
    if not model.has("aliases"):
        return []
    at = model.key("aliases")
    return list(at.items()) if isinstance(at.node, Items) else []


def _take(at: At, model: str, models: dict[str, At], aliases: dict[str, str]) -> None:
    """Note an alias that clashes; what it is made of is checked where the model is read."""
    alias = at.node.text if isinstance(at.node, Scalar) else ""
    if alias in _RESERVED:
        at.note(f"{alias} is zurelay's own name; choose another")
    elif alias in models:
        at.note(f"{shown(alias)} is the id of a model already; choose another")
    elif aliases.setdefault(alias, model) != model:
        at.note(f"{shown(alias)} is an alias of {shown(aliases[alias])} already; choose another")
