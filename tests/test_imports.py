"""The house: every room stands on a line of its own, imports point up the table only, the pure rooms stay pure."""

from __future__ import annotations

import ast
import pathlib
import sys
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).parent.parent
SOURCES = ROOT / "service" / "zurelay"
TESTS = ROOT / "tests"

# A room is a file, or a package with all that is in it. It may import from the lines above its own, and from no other.
PURE = """
model                                           the nouns
errors                                          the error tree
nearby units problems                           text for people
contract                                        what Envoy must be like
surrogates                                      half characters in JSON
sse jsonedit encoding chunk                     bytes, taken apart and put together
message_event
http2                                           a connection of frames
headers paths                                   what passes, and what a path names
trace_context otlp moments semconv              telemetry's words: contexts, messages, names
captured
tally
families
yamlnodes                                       files that people write, with their lines
settings
keysjson
keysyaml
keysfile
keysedit
catalog identity effort media usage             what is known
carried
money rules                                           what it costs, and what is left to spend
access
limits news
windows policy
plan                                            what is planned
tokens refusal auto
request rewrite caps failure                         what the client sent, what a provider gets, what the client gets
fit openai_answer permits
listing
selection formats                               choices, and the other format
translatable passthrough
candidates
decide
explain
ledger
chat_stream messages_answer messages_body       one side's answer, made the other's
messages_stream translated_stream
exchange relay_words verdict
attempt                                         states
relay
store                                           seams
settlement ports
tried otel
attributes
spans
counting logline budgets
access_log
redis_messages usage_report
"""
SHELLS = """
protos envoy egress_client http1_messages       the wires
grpcwire heard
http1 clock claims export
loglines sqlite_file chores                           what is kept
sqlite_keeper sqlite_reader
sqlite_opening
store_sqlite store_redis
stores
telemetry
simulate supervise recorder worker wire         what runs, and what it holds
attempt_answers
admission planning attempts relaying report log_service                the processors
handover
ingress
servicer
cli_parts
cli_envoy cli_keys cli_usage                              commands
server cli                                      doors
__main__
"""
WORLD = {
    *("asyncio", "socket", "ssl", "select", "selectors", "threading", "multiprocessing", "subprocess", "signal"),
    *("os", "time", "pathlib", "io.open", "shutil", "tempfile", "glob", "logging", "secrets", "random", "uuid"),
    *("http.client", "http.server", "urllib.request", "sqlite3", "contextvars"),
}
LIBRARIES = {
    "msgspec",
    "yaml",
    "brotli",
    "zstandard",
    "hpack",
}  # of others, what a pure room may use: codecs, nothing that acts
CLOCKS_AND_FILES = {"now", "utcnow", "today", "open", "print", "input", "read_text", "read_bytes", "write_text"}

# Files without a test file of their own, and why.
UNTESTED = {
    "model.py": "values without behaviour",
    "http2/events.py": "values without behaviour",
    "ports.py": "protocols without behaviour",
    "protos": "generated; tests/test_protos.py",
    "__main__.py": "the door: tests/e2e starts it",
    "cli_envoy.py": "tests/envoy/test_manifests.py",
    "cli_keys.py": "tests/test_cli.py",
    "cli_parts.py": "tests/test_cli.py",
    "server.py": "a worker process: tests/e2e starts it",
    "servicer.py": "needs Envoy: tests/e2e",
    "handover.py": "needs Envoy: tests/e2e",
    "ingress.py": "needs Envoy: tests/e2e",
    "planning.py": "needs Envoy: tests/e2e",
    "attempts.py": "needs Envoy: tests/e2e",
    "attempt_answers.py": "needs Envoy: tests/e2e",
    "relaying.py": "needs Envoy: tests/e2e",
    "log_service.py": "needs Envoy: tests/e2e/test_ends.py",
    "heard.py": "Envoy alone can send the messages: tests/e2e",
    "wire.py": "Envoy alone can tell whether the messages are right: tests/e2e, tests/test_protos.py",
}


def lines(table: str) -> list[list[str]]:
    """The rooms of each line; what stands behind two spaces is said about them."""
    return [line.split("  ")[0].split() for line in table.strip().splitlines()]


PURE_ROOMS = [room for line in lines(PURE) for room in line]
ORDER = lines(PURE) + lines(SHELLS)
LINE = {room: number for number, line in enumerate(ORDER) for room in line}
FILES = sorted(path for path in SOURCES.rglob("*.py") if path != SOURCES / "__init__.py")


def room_of(path: pathlib.Path) -> str:
    return path.relative_to(SOURCES).parts[0].removesuffix(".py")


def imports(path: pathlib.Path) -> Iterator[str]:
    """Every module that a file imports, wherever in it, by its full name; `from a import b` gives a.b."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def rooms_used(path: pathlib.Path) -> set[str]:
    ours = (name.split(".") for name in imports(path) if name.split(".")[0] == "zurelay")
    return {parts[1] for parts in ours} - {room_of(path)}


def ids(paths: list[pathlib.Path]) -> list[str]:
    return [str(path.relative_to(SOURCES)) for path in paths]


def test_every_room_stands_in_the_table_once() -> None:
    named = [room for line in ORDER for room in line]
    there = {room_of(path) for path in FILES}
    assert ([], []) == (sorted(there - set(named)), sorted(set(named) - there))
    assert len(named) == len(set(named))


@pytest.mark.parametrize("path", FILES, ids=ids(FILES))
def test_imports_point_up_the_table_only(path: pathlib.Path) -> None:
    own = LINE.get(room_of(path), len(ORDER))
    assert [] == sorted(room for room in rooms_used(path) if LINE.get(room, 0) >= own)


PURE_FILES = [path for path in FILES if room_of(path) in PURE_ROOMS]


@pytest.mark.parametrize("path", PURE_FILES, ids=ids(PURE_FILES))
def test_a_pure_room_touches_nothing_of_the_world(path: pathlib.Path) -> None:
    touched = {name for name in imports(path) if any(name == one or name.startswith(f"{one}.") for one in WORLD)}
    assert set() == touched
    foreign = {name.split(".")[0] for name in imports(path)} - set(sys.stdlib_module_names) - {"zurelay"}
    assert set() == foreign - LIBRARIES


@pytest.mark.parametrize("path", PURE_FILES, ids=ids(PURE_FILES))
def test_a_pure_room_asks_no_clock_and_opens_no_file(path: pathlib.Path) -> None:
    calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    named = {call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls}
    assert set() == named & CLOCKS_AND_FILES


def has_code(path: pathlib.Path) -> bool:
    """Whether there is anything to test: not in a file of imports and words alone."""
    body = ast.parse(path.read_text()).body
    return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) for node in body)


def own_tests(path: pathlib.Path) -> pathlib.Path:
    """Where a source's tests are: beside its package's for `__init__.py`."""
    place = path.relative_to(SOURCES)
    if path.name == "__init__.py":
        return TESTS / place.parent.parent / f"test_{place.parent.name}.py"
    return TESTS / place.parent / f"test_{place.name}"


def is_exempt(path: pathlib.Path) -> bool:
    return bool({room_of(path), str(path.relative_to(SOURCES))} & set(UNTESTED))


TESTED = [path for path in FILES if has_code(path) and not is_exempt(path)]


@pytest.mark.parametrize("path", TESTED, ids=ids(TESTED))
def test_every_source_has_its_test_file(path: pathlib.Path) -> None:
    assert own_tests(path).exists(), f"{path.name} has no test file, and no reason why in UNTESTED"


def test_every_exception_is_still_there() -> None:
    assert [] == [name for name in UNTESTED if not (SOURCES / name).exists()]
