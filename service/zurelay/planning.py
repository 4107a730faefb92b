"""Plans a request by what is known just now and what the client wishes; what the rules found goes on record."""

from __future__ import annotations

import logging

import msgspec

from zurelay import decide, explain, headers
from zurelay.access import Caller
from zurelay.catalog import Catalog
from zurelay.errors import InvalidRequest
from zurelay.heard import Head
from zurelay.plan import Plan
from zurelay.policy import Matched
from zurelay.request import ChatRequest
from zurelay.worker import Worker

_log = logging.getLogger("zurelay")


def planned(
    worker: Worker,
    catalog: Catalog,
    caller: Caller,
    matched: Matched,
    request: ChatRequest,
    head: Head,
    request_id: str,
) -> Plan:
    """Decide which attempts answer the request."""
    facts = decide.Facts(
        caller=caller,
        request_id=request_id,
        rules=matched.enforced,
        fallback=switch(head, headers.FALLBACK),
        set_aside=worker.routes_aside(),
    )
    decision = decide.decide(catalog, request, facts)
    for finding in decision.findings:
        worker.recorder.ruled(request_id, finding, shadow=False)
    for finding in explain.foretold(decision, request, matched.shadow):
        worker.recorder.ruled(request_id, finding, shadow=True)
    if _log.isEnabledFor(logging.DEBUG):
        _log.debug("%s", msgspec.json.encode(explain.whole(decision, request, caller, matched)).decode())
    if switch(head, headers.EXPLAIN, ("1", "0")):
        return msgspec.structs.replace(decision.plan, explained=explain.summary(decision))
    return decision.plan


def switch(head: Head, name: str, words: tuple[str, str] = ("on", "off")) -> bool | None:
    """Read a header that is one of two words, the first for yes; None where it is left out."""
    value = head.headers.get(name)
    if value is None:
        return None
    word = value.strip().lower()
    if word not in words:
        raise InvalidRequest(f"{name} is {value[:20]!r}: send {' or '.join(words)}.", param=name)
    return word == words[0]
