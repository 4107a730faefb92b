"""The URL of a Redis: what the client would trip over is a problem of the file, and no message shows a password."""

from __future__ import annotations

from typing import Any

import pytest
import redis.asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from zurelay import yamlnodes
from zurelay.settings.places import At, Broken
from zurelay.settings.redis import redis_url
from zurelay.yamlnodes import Scalar

RIGHT = [
    "redis://r",
    "redis://r:6379",
    "redis://127.0.0.1/",
    "redis://[::1]:6379/15",
    "rediss://:pw@r:6379/1",
    "redis://user:p%40s%23s%2F%3F%25:@r/0",
    "redis://user@r?db=2&client_name=zurelay&protocol=3",
    "rediss://r?ssl_cert_reqs=none&ssl_ca_certs=/etc/ca.pem&ssl_check_hostname=true&health_check_interval=5",
    "unix:///run/redis.sock",
    "unix:/run/redis.sock",
    "unix://:pw@/run/redis.sock?db=3",
    "unix:///run/redis.sock?password=p%26w",
]


def read(url: str) -> tuple[str | None, list[str]]:
    problems: list[Any] = []
    try:
        return redis_url(At(Scalar(1, url, plain=False), 1, problems)), []
    except Broken:
        return None, [problem.message for problem in problems]


@pytest.mark.parametrize("url", RIGHT)
async def test_what_is_right_is_what_the_client_connects_by(url: str) -> None:
    assert (url, []) == read(url)
    client: Any = redis.asyncio.Redis.from_url(url)
    client.connection_pool.make_connection()  # refuses options that it doesn't know
    await client.aclose()


WRONG = {
    "a # in the password": ("redis://:s3#cret@r:6379", "holds a #"),
    "a ? in the password": ("redis://:s3?cret@r:6379", "holds a ? before an @"),
    "a / in the password": ("redis://:s3/cret@r:6379", "holds a / before an @"),
    "an @ in the password": ("redis://:s3@cret@r:6379", "its user or password holds"),
    "a bad escape in the password": ("redis://:s3%zzcret@r", "its user or password holds"),
    "a letter beyond ASCII": ("redis://:s3crété@r", "its user or password holds"),
    "no host": ("redis://:s3cret@", "its host is no name"),
    "no host at all": ("redis://", "its host is no name"),
    "a password and no @": ("redis://r:s3cret", "its port isn't a number"),
    "a port beyond": ("redis://:s3cret@r:65536", "its port isn't a number"),
    "a port of nothing": ("redis://:s3cret@r:", "its port isn't a number"),
    "a port of 0": ("redis://:s3cret@r:0", "its port isn't a number"),
    "brackets": ("redis://:s3cret@[::1", "its host is no name"),
    "a database in words": ("redis://:s3cret@r/main", "its path is the number of a database"),
    "a path": ("redis://:s3cret@r/0/1", "its path is the number of a database"),
    "an unknown option": ("redis://:s3cret@r?s3cret=1", "after the ? stand db,"),
    "an option of ours": ("redis://:s3cret@r?socket_timeout=9", "after the ? stand db,"),
    "an option twice": ("redis://:s3cret@r?db=1&db=2", "after the ? stand db,"),
    "an option for TLS without": ("redis://:s3cret@r?ssl_cert_reqs=none", "after the ? stand db,"),
    "no option": ("redis://:s3cret@r?", "after the ? stand db,"),
    "a database that is none": ("redis://:s3cret@r?db=s3cret", "its db isn't one"),
    "a protocol that is none": ("redis://r?protocol=4", "its protocol isn't one"),
    "no value": ("redis://r?db", "its db isn't one"),
    "another scheme": ("http://:s3cret@r", "expected a URL that begins with"),
    "no scheme": ("s3cret", "expected a URL that begins with"),
    "one slash": ("redis:/r", "expected a URL that begins with"),
    "a socket without a path": ("unix://", "expected the path of a socket"),
    "a socket at a host": ("unix://r/run/redis.sock", "expected the path of a socket"),
    "a space": ("redis://:s3 cret@r", "its user or password holds"),
}


@pytest.mark.parametrize(("url", "problem"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_without_saying_any_of_it_again(url: str, problem: str) -> None:
    found, problems = read(url)
    assert found is None
    assert problem in problems[0]
    assert not any("s3" in message or "cret" in message for message in problems)


@settings(deadline=None)
@given(st.from_regex(r"(redis|rediss|unix):/{0,3}[a-z0-9:@/?#%&=.\[\]-]{0,30}", fullmatch=True))
def test_whatever_passes_is_understood_by_the_client(url: str) -> None:
    if read(url)[0] is not None:
        redis.asyncio.connection.parse_url(url)


def test_what_is_no_text_is_a_problem() -> None:
    problems: list[Any] = []
    node = yamlnodes.load("[a]", problems)
    assert node is not None
    with pytest.raises(Broken):
        redis_url(At(node, 1, problems))
