from typing import Any

import pytest

from zurelay.model import Keep, Limits, OnFailure, Secret, Store, Streaming, Telemetry, Timeouts
from zurelay.settings import running
from zurelay.settings.facts import Facts
from zurelay.settings.names import Names

FACTS = Facts(environ={"URL": "redis://r"}, readable=lambda path: path == "there", names=Names([], [], {}))
READERS = {
    "streaming": running.streaming,
    "timeouts": running.timeouts,
    "store": lambda at: running.store(at, FACTS),
    "workers": running.workers,
    "limits": running.limits,
    "telemetry": running.telemetry,
}
RIGHT = {
    "streaming left out": ("streaming", "{}", Streaming()),
    "streaming": (
        "streaming",
        "{open_after: 1s, keepalive: 1500ms, messages_keepalive: 2s, passthrough: true}",
        Streaming(open_after=1.0, keepalive=1.5, messages_keepalive=2.0, passthrough=True),
    ),
    "timeouts left out": ("timeouts", "{}", Timeouts()),
    "timeouts": (
        "timeouts",
        "{first_token: 1s, first_token_high: 2s, whole: 3s, whole_high: 4s, total: 5m, idle: 6s}",
        Timeouts(first_token=1.0, first_token_high=2.0, whole=3.0, whole_high=4.0, total=300.0, idle=6.0),
    ),
    "the store left out": ("store", "{}", Store()),
    "SQLite": (
        "store",
        "{sqlite: /var/lib/z.db, on_failure: refuse}",
        Store(sqlite="/var/lib/z.db", on_failure=OnFailure.REFUSE),
    ),
    "Redis": ("store", "{redis: 'rediss://:pw@r:6379/1'}", Store(sqlite=None, redis="rediss://:pw@r:6379/1")),
    "Redis by a socket": (
        "store",
        "{redis: 'unix:///run/redis.sock'}",
        Store(sqlite=None, redis="unix:///run/redis.sock"),
    ),
    "Redis by a variable": (
        "store",
        "{redis: {env: URL}, on_failure: refuse}",
        Store(sqlite=None, redis_secret=Secret(env="URL"), on_failure=OnFailure.REFUSE),
    ),
    "Redis by a file": ("store", "{redis: {file: there}}", Store(sqlite=None, redis_secret=Secret(file="there"))),
    "workers by the machine": ("workers", "auto", None),
    "workers": ("workers", "4", 4),
    "limits left out": ("limits", "{}", Limits()),
    "limits": (
        "limits",
        "{request_body: 1MB, response_body: 2MiB, bodies_in_flight: 1MB}",
        Limits(request_body=1_000_000, response_body=2 << 20, bodies_in_flight=1_000_000),
    ),
    "telemetry left out": ("telemetry", "{}", Telemetry()),
    "telemetry": (
        "telemetry",
        "{otlp: 'http://127.0.0.1:4317', sample: 0.25, capture_content: true}",
        Telemetry(otlp="http://127.0.0.1:4317", sample=0.25, capture_content=True),
    ),
    "all of telemetry": (
        "telemetry",
        "{keep: [errors, fallbacks], propagate: true, logs: true, access_log: true}",
        Telemetry(keep=frozenset(Keep), propagate=True, logs=True, access_log=True),
    ),
}


@pytest.mark.parametrize(("section", "text", "value"), RIGHT.values(), ids=RIGHT)
def test_a_section_is_read(read_one: Any, section: str, text: str, value: object) -> None:
    assert (value, []) == read_one(READERS[section], text)


WRONG = {
    "something else to keep": (
        "telemetry",
        "{keep: [eror]}",
        "keep[0]: expected one of errors or fallbacks, not eror; did you mean errors?",
    ),
    "a time without unit": (
        "timeouts",
        "total: 570",
        "total: the number has no unit: write it as 20s, 500ms, 2m or 1h",
    ),
    "no time at all": ("streaming", "open_after: 0s", "open_after: expected a duration above 0s and up to 24h"),
    "another time": (
        "timeouts",
        "first_tokn: 5s",
        "first_tokn: unknown key; did you mean first_token or first_token_high?",
    ),
    "two stores": ("store", "{sqlite: a, redis: 'redis://b'}", "names two stores; keep sqlite or redis"),
    "a store with a password": (
        "store",
        "{redis: 'http://:secret@b'}",
        (
            "redis: expected a URL that begins with redis://, rediss:// or unix:///,"
            " or {env: NAME} or {file: PATH} where one is"
        ),
    ),
    "two stores, one of them secret": (
        "store",
        "{sqlite: a, redis: {file: there}}",
        "names two stores; keep sqlite or redis",
    ),
    "a secret that isn't there": (
        "store",
        "{redis: {env: OTHER}}",
        "redis.env: the environment variable OTHER is not set",
    ),
    "no such choice": (
        "store",
        "{on_failure: alow}",
        "on_failure: expected one of allow or refuse, not alow; did you mean allow?",
    ),
    "no workers": ("workers", "0", "expected a whole number from 1 to 128"),
    "workers in words": ("workers", "many", "expected auto or a whole number"),
    "workers in a list": ("workers", "[4]", "expected auto or a whole number"),
    "a body over 32 bits": ("limits", "request_body: 4GiB", "request_body: expected a size from 1KiB to 1GiB"),
    "a body over all of them": (
        "limits",
        "{request_body: 1GiB}",
        "request_body, 1GiB, is over bodies_in_flight, 512MiB: no request of that size could come in",
    ),
    "too large a sample": ("telemetry", "sample: 1.5", "sample: expected a number from 0 to 1"),
    "no collector": ("telemetry", "otlp: 127.0.0.1:4317", "otlp: expected a URL that begins with https:// or http://"),
}


@pytest.mark.parametrize(("section", "text", "problem"), WRONG.values(), ids=WRONG)
def test_each_mistake_in_a_section_is_a_problem(read_one: Any, section: str, text: str, problem: str) -> None:
    assert [f"line 1: {problem}"] == read_one(READERS[section], text)[1]
