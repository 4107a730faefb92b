"""Reads the configuration file and the file of the keys: both parsed, with every problem, or none in force."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from zurelay import keysfile, otel, settings
from zurelay.model import Identity, Key, Listen, Provider, Secret, Settings, Store, Telemetry, Tls
from zurelay.problems import Problem, SettingsError

_LARGEST = 16 << 20  # a catalog of a thousand models takes one


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration that may be put in force: the texts, as workers parse them; `settings` with absolute paths."""

    text: str
    keys_text: str = ""
    settings: Settings
    keys: tuple[Key, ...] = ()


class FileProblem(msgspec.Struct, frozen=True):
    """A problem and the file that it is in."""

    file: str
    problem: Problem

    def __str__(self) -> str:
        """Write it as `zurelay.yaml: line 3: ...`."""
        return f"{self.file}: {self.problem}"


class LoadError(Exception):
    """The files can't be used; all that is wrong with them."""

    def __init__(self, problems: tuple[FileProblem, ...]) -> None:
        self.problems = problems
        super().__init__("\n".join(map(str, problems)))


class Everything(dict[str, str]):
    """An environment in which every variable is set: Envoy's, where Envoy runs elsewhere."""

    def __contains__(self, key: object) -> bool:
        return True

    def __missing__(self, key: str) -> str:
        return key

    def get(self, key: str, default: object = None) -> str:  # noqa: ARG002  # never the default
        """Say that it is set."""
        return key


def load(path: Path, environ: Mapping[str, str], *, elsewhere: bool = False) -> Loaded:
    """Read a configuration. Relative paths in it start at its own directory.

    `elsewhere`: Envoy has its own file system and environment, so that secrets and certificates can't be looked for.
    """
    base = path.absolute().parent
    text = read(path)

    def readable(name: str) -> bool:
        return elsewhere or _readable(base / name)

    try:
        found = settings.parse(text, environ=Everything() if elsewhere else environ, readable=readable)
    except SettingsError as error:
        raise _problems(path, error.problems) from None
    _check_telemetry(path, found.telemetry, environ)
    if found.auth.keys is None:
        return Loaded(text=text, settings=resolve(found, base))
    keys_path = base / found.auth.keys
    keys_text = read(keys_path)
    unpriced: tuple[Problem, ...] = ()
    try:
        keys = keysfile.parse(keys_text)
        unpriced = settings.unpriced(found, keys)
        keys = keysfile.bind(keys, found)
    except SettingsError as error:
        others = tuple(problem for problem in error.problems if problem not in unpriced)
        raise LoadError(_problems(path, unpriced).problems + _problems(keys_path, others).problems) from None
    return Loaded(text=text, keys_text=keys_text, settings=resolve(found, base), keys=keys)


def _check_telemetry(path: Path, telemetry: Telemetry, environ: Mapping[str, str]) -> None:
    try:
        export = otel.export(telemetry, environ)
    except otel.OtelError as error:
        raise _problems(path, (Problem(0, "telemetry", str(error)),)) from None
    for target in export.targets.values() if export is not None else ():
        if target.ca is not None and not _readable(Path(target.ca)):
            said = f"OTEL_EXPORTER_OTLP_CERTIFICATE names {target.ca}, which can't be read: name a file of certificates"
            raise _problems(path, (Problem(0, "telemetry", said),))


def resolve(found: Settings, base: Path) -> Settings:
    """Make every path absolute; Envoy runs in a directory of its own."""

    def absolute(name: str | None) -> str | None:
        return None if name is None else os.path.normpath(base / name)

    return msgspec.structs.replace(
        found,
        listen=_listen(found.listen, absolute),
        providers={name: _provider(provider, absolute) for name, provider in found.providers.items()},
        identity=_identity(found.identity, absolute),
        auth=msgspec.structs.replace(found.auth, keys=absolute(found.auth.keys)),
        store=_store(found.store, absolute),
    )


_Absolute = Callable[[str | None], str | None]


def _listen(listen: Listen, absolute: _Absolute) -> Listen:
    if listen.tls is None:
        return listen
    pair = Tls(cert=str(absolute(listen.tls.cert)), key=str(absolute(listen.tls.key)))
    return msgspec.structs.replace(listen, tls=pair)


def _provider(provider: Provider, absolute: _Absolute) -> Provider:
    return msgspec.structs.replace(provider, ca=absolute(provider.ca), api_key=_secret(provider.api_key, absolute))


def _store(store: Store, absolute: _Absolute) -> Store:
    return msgspec.structs.replace(
        store, sqlite=absolute(store.sqlite), redis_secret=_secret(store.redis_secret, absolute)
    )


def _secret(secret: Secret | None, absolute: _Absolute) -> Secret | None:
    return secret if secret is None or secret.file is None else Secret(file=absolute(secret.file))


def _identity(identity: Identity, absolute: _Absolute) -> Identity:
    files = {name: absolute(getattr(identity, name)) for name in ("ca", "cert", "key")}
    return msgspec.structs.replace(identity, **files)


def secret_variables(found: Settings) -> frozenset[str]:
    """Name the environment variables that hold provider keys."""
    secrets = (provider.api_key for provider in found.providers.values())
    return frozenset(secret.env for secret in secrets if secret is not None and secret.env is not None)


def _problems(path: Path, problems: tuple[Problem, ...]) -> LoadError:
    return LoadError(tuple(FileProblem(str(path), problem) for problem in problems))


def read(path: Path) -> str:
    """Read a text file that a person wrote, or raise LoadError."""
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise _problems(path, (Problem(0, "", f"is over {_LARGEST >> 20} MiB; is it the right file?"),))
        return data.decode()
    except OSError as error:
        raise _problems(path, (Problem(0, "", f"can't be read: {error.strerror}"),)) from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _problems(path, (Problem(line, "", "isn't UTF-8; save it as UTF-8"),)) from None


def _readable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.R_OK)
