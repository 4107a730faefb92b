"""From a request to the actions that answer it: which endpoint, which fault, what the real API would refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import msgspec

from zurelay.simulate import answers, anthropic, checks, faults, listing, openai, reading, script
from zurelay.simulate.actions import Action
from zurelay.simulate.faults import BadFault, Fault, Wish
from zurelay.simulate.nouns import Ask, Dialect, Json, Refusal


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How the provider behaves. `token_pause` is in seconds; without a credential all are let in."""

    token_pause: float = 0.02
    credential: str | None = None
    models: tuple[str, ...] = ("simulated-small", "simulated-large")


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """A request, and what only the server knows: an id and the time. Header names are lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    id: str
    created: int


class Response(msgspec.Struct, frozen=True):
    """The fault that was used, and what to do."""

    spec: str
    actions: Iterator[Action]


class _Read(msgspec.Struct, frozen=True, kw_only=True):
    """A request taken apart."""

    dialect: Dialect
    body: Mapping[str, Json]
    ask: Ask
    problem: Refusal | None


def respond(facts: Facts, settings: Settings, attempts: Callable[[tuple[str, ...]], int]) -> Response:
    """Decide the answer; `attempts` counts how often it was asked for a key before."""
    spec, path = faults.split_path(facts.path)
    read = _read(facts, path)
    try:
        wish = faults.wish(
            read.ask.model, read.ask.text, read.body.get("simulate"), facts.headers.get("x-simulate"), spec
        )
        place = attempts(wish.key) if len(wish.specs) > 1 else 0
        spec = wish.specs[min(place, len(wish.specs) - 1)].strip()
        fault = faults.parse(spec)
    except BadFault as exc:
        refusal = Refusal(400, str(exc), "unknown_fault", "simulate")
        return Response("", script.refused(refusal, Fault(), read.dialect))
    return Response(spec, _actions(facts, settings, read, path, fault, wish))


def _read(facts: Facts, path: str) -> _Read:
    """Take a request apart as far as it goes; what is wrong with it comes after the faults."""
    messages = path.endswith(("/messages", "/messages/count_tokens"))
    models = "/models" in path and "anthropic-version" in facts.headers  # a gateway may send that to chat too
    dialect: Dialect = anthropic if messages or models else openai
    problem = _route_problem(facts.method, path)
    body: Json = {}
    if problem is None and facts.method == "POST":
        try:
            body = reading.decode(facts.body)
        except ValueError as exc:
            problem = Refusal(400, f"We could not parse the JSON body of your request: {exc}.")
        else:
            problem = (
                None if isinstance(body, dict) else Refusal(400, "The body of your request must be a JSON object.")
            )
    body = body if isinstance(body, dict) else {}
    return _Read(dialect=dialect, body=body, ask=dialect.read(body), problem=problem)


def _route_problem(method: str, path: str) -> Refusal | None:
    posts = path.endswith(("/chat/completions", "/messages", "/messages/count_tokens"))
    gets = path.endswith("/models") or "/models/" in path
    if not posts and not gets:
        return Refusal(404, f"Invalid URL ({method} {path})", "unknown_url")
    if method != ("POST" if posts else "GET"):
        return Refusal(405, f"Not allowed to {method} on {path}.", "method_not_supported")
    return None


def _actions(facts: Facts, settings: Settings, read: _Read, path: str, fault: Fault, wish: Wish) -> Iterator[Action]:
    yield from script.before(fault)
    ask, dialect = read.ask, read.dialect
    refusal = script.refusal(fault, dialect, ask.prompt_tokens, read.body) or _refusal(facts, settings, read, path)
    if refusal is not None:
        yield from script.refused(refusal, fault, dialect)
    elif facts.method == "GET":
        yield from script.plain(_models(settings, path, read), fault)
    elif path.endswith("/count_tokens"):
        yield from script.plain(listing.tokens(ask.prompt_tokens if fault.input is None else fault.input), fault)
    else:
        ask = msgspec.structs.replace(ask, text=faults.without_mark(ask.text))
        answer = answers.compose(ask, fault, wish, id=facts.id, created=facts.created)
        yield from script.answered(answer, fault, dialect, stream=ask.stream, pause=settings.token_pause)


def _refusal(facts: Facts, settings: Settings, read: _Read, path: str) -> Refusal | None:
    """Find what the real API would refuse."""
    if settings.credential is not None and settings.credential not in _credentials(facts.headers):
        return Refusal(401, "Incorrect API key provided: the simulated provider was given another one.")
    if read.problem is not None:
        return read.problem
    if facts.method == "GET":
        name = path.partition("/models/")[2]
        known = not name or name in settings.models
        return None if known else Refusal(404, f"The model '{name}' does not exist.", param="model")
    if read.dialect is openai:
        return checks.openai(read.body)
    version = facts.headers.get("anthropic-version")
    return checks.messages(read.body, version, counting=path.endswith("/count_tokens"))


def _credentials(headers: Mapping[str, str]) -> list[str]:
    """Give the credentials of a request; Azure's OpenAI takes `api-key`."""
    bearer = headers.get("authorization", "").removeprefix("Bearer ")
    return [bearer, headers.get("x-api-key", ""), headers.get("api-key", "")]


def _models(settings: Settings, path: str, read: _Read) -> bytes:
    name = path.partition("/models/")[2]
    shape = read.dialect is anthropic
    return listing.model(name, anthropic=shape) if name else listing.models(settings.models, anthropic=shape)
