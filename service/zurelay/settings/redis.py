"""The URL of a Redis, taken apart as strictly as other URLs are: what the client would trip over, is said at `check`.

It may hold a password, and one that isn't percent-encoded may be cut anywhere: no message says any of it again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import unquote

from zurelay.problems import Problem
from zurelay.settings.places import At, Broken
from zurelay.settings.scalars import text
from zurelay.settings.urls import host_and_port
from zurelay.yamlnodes import Scalar

_ENCODED = "[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2}"  # RFC 3986, 3.2.1
_USER = re.compile(rf"(?:{_ENCODED})*(?::(?:{_ENCODED}|:)*)?")
_SOCKET = re.compile(rf"/(?:{_ENCODED}|[/@:])+")
_VALUE = re.compile(rf"(?:{_ENCODED}|[/@:])+")
_DATABASE = re.compile(r"/?|/[0-9]{1,5}")
_WORDS = "expected a URL that begins with redis://, rediss:// or unix:///"
_ELSEWHERE = ", or {env: NAME} or {file: PATH} where one is"
_HINT = "in a user or password, / ? # @ % are written %2F %3F %23 %40 %25"


def _one_of(*words: str) -> Callable[[str], bool]:
    return lambda value: value in words


def _number(value: str) -> bool:
    return re.fullmatch(r"[0-9]{1,5}", value) is not None


def _anything(value: str) -> bool:
    return _VALUE.fullmatch(value) is not None


# What may be said of the connection; how long we wait for it is ours to say.
_OPTIONS: dict[str, Callable[[str], bool]] = {
    "db": _number,
    "protocol": _one_of("2", "3"),
    "client_name": _anything,
    "health_check_interval": _number,
    "username": _anything,
    "password": _anything,
}
_TLS_OPTIONS = _OPTIONS | {
    "ssl_cert_reqs": _one_of("none", "optional", "required"),
    "ssl_check_hostname": _one_of("true", "false"),
    "ssl_ca_certs": _anything,
    "ssl_certfile": _anything,
    "ssl_keyfile": _anything,
}


def redis_url(at: At) -> str:
    """Read redis://, rediss:// (TLS), each with a host, or unix:// with a socket's path."""
    written = text(at)
    scheme, _, rest = written.partition(":")
    if scheme not in ("redis", "rediss", "unix") or not rest.startswith("//" if scheme != "unix" else "/"):
        raise at.wrong(_WORDS + _ELSEWHERE)
    if "#" in rest:
        raise at.wrong(f"holds a #, which would end it; {_HINT}")
    place, mark, query = rest.partition("?")
    if "@" in query:
        raise at.wrong(f"holds a ? before an @; {_HINT}")
    if place.startswith("//"):
        authority, slash, path = place[2:].partition("/")
        _check_place(at, scheme, authority, slash + path)
    elif not _SOCKET.fullmatch(place):
        raise at.wrong("its path holds a character that a URL can't; write it percent-encoded")
    if mark:
        _check_options(at, query, _TLS_OPTIONS if scheme == "rediss" else _OPTIONS)
    return written


def problem(url: str) -> str | None:
    """Say what is wrong with a URL that isn't in the file itself; None if nothing is."""
    problems: list[Problem] = []
    try:
        redis_url(At(Scalar(1, url, plain=False), 1, problems))
    except Broken:
        return problems[0].message.removesuffix(_ELSEWHERE)
    return None


def _check_place(at: At, scheme: str, authority: str, path: str) -> None:
    if "@" in path and scheme != "unix":
        raise at.wrong(f"holds a / before an @; {_HINT}")
    user, sign, host = authority.rpartition("@")
    if sign and not _USER.fullmatch(user):
        raise at.wrong(f"its user or password holds a character that a URL can't; {_HINT}")
    if scheme == "unix":
        if host or not _SOCKET.fullmatch(path):
            raise at.wrong("expected the path of a socket: unix:///run/redis.sock")
        return
    host_and_port(at, host)
    if not _DATABASE.fullmatch(path):
        raise at.wrong(f"its path is the number of a database, such as /0; {_HINT}")


def _check_options(at: At, query: str, options: dict[str, Callable[[str], bool]]) -> None:
    seen: set[str] = set()
    for option in query.split("&"):
        name, _, value = option.partition("=")
        check = options.get(name)
        if check is None or name in seen:
            raise at.wrong(f"after the ? stand {', '.join(options)}, each once, as NAME=VALUE; {_HINT}")
        if not _VALUE.fullmatch(value) or not check(unquote(value)):
            raise at.wrong(f"its {name} isn't one that can be used")
        seen.add(name)
