"""What one worker process holds between requests: the configuration in force, routes set aside, bodies in flight."""

from __future__ import annotations

import asyncio
import secrets
import time

import msgspec

from zurelay import settlement
from zurelay.access import KeyRing
from zurelay.catalog import Catalog
from zurelay.claims import MOMENT
from zurelay.egress_client import Egress
from zurelay.errors import GatewayUnavailable, TooLarge
from zurelay.identity import Identifier
from zurelay.model import Identity, Key, Settings
from zurelay.policy import Policies
from zurelay.ports import Ends, Record, Recorder
from zurelay.store import Store


class Bodies:
    """How many bytes of request bodies are held at once, and the bound on it (SPEC 3)."""

    __slots__ = ("_held", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = 0

    @property
    def held(self) -> int:
        """Bytes held now."""
        return self._held

    def take(self, size: int) -> None:
        """Hold `size` bytes more, or say that there is no room."""
        if self._held + size > self._limit:
            raise GatewayUnavailable("Too many large requests at once. Try again in a second.", retry_after=1)
        self._held += size

    def give_back(self, size: int) -> None:
        """Hold `size` bytes less."""
        self._held -= size

    def resize(self, limit: int) -> None:
        """Change the bound; what is held stays."""
        self._limit = limit


class Held:
    """One request's share of the bodies in flight: grows as the body comes, goes with the request."""

    __slots__ = ("_bodies", "_limit", "_size", "_taken")

    def __init__(self, bodies: Bodies, limit: int, declared: int | None) -> None:
        self._bodies = bodies
        self._limit = limit
        self._size = 0
        self._taken = 0
        if declared is not None:  # no share yet: who only announces a body must not keep others out
            self._check(declared)

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise TooLarge(f"The body is larger than the {self._limit} bytes that a request may have: send less.")

    def grow(self, size: int) -> None:
        """Take in `size` more bytes of the body."""
        self._size += size
        self._check(self._size)
        if self._size > self._taken:
            self._bodies.take(self._size - self._taken)
            self._taken = self._size

    def decoded(self, size: int) -> None:
        """The body takes `size` bytes now that its coding is undone."""
        self._check(size)
        if size > self._taken:
            self._bodies.take(size - self._taken)
            self._taken = size

    def release(self) -> None:
        """The request is over."""
        self._bodies.give_back(self._taken)
        self._taken = 0


class Worker:
    """The state that the processors share. Replaced piece by piece on reload, between two requests."""

    def __init__(self, *, egress: str, egress_token: str, workers: int, recorder: Recorder, ends: Ends) -> None:
        self._ends = ends
        self.egress = Egress(egress)  # the egress listener
        self.egress_token = egress_token
        self.recorder = recorder
        self.draining = False
        self.stopping = False  # calls that are cut now are cut by us, and go to another worker
        self.bodies = Bodies(0)
        self.workers = workers
        self._aside: dict[str, float] = {}
        self._catalog: Catalog | None = None
        self._keys: KeyRing | None = None
        self._store: Store | None = None
        self.policies = Policies(())
        self.identifier = Identifier(Identity())

    def configure(self, settings: Settings, keys: tuple[Key, ...], store: Store | None = None) -> None:
        """Put a configuration in force; those under way keep theirs, but settle in the new store."""
        self._catalog = Catalog(settings)
        self._keys = KeyRing(keys, settings.auth.require)
        self._store = store or self._store
        self.policies = Policies(settings.policies)
        self.identifier = Identifier(settings.identity)
        # Workers share the bound evenly; each can hold one body of the largest size.
        self.bodies.resize(max(settings.limits.bodies_in_flight // self.workers, settings.limits.request_body))

    @property
    def catalog(self) -> Catalog:
        """The catalog in force."""
        if self._catalog is None:
            raise GatewayUnavailable("The gateway is starting. Try again in a second.", retry_after=1)
        return self._catalog

    @property
    def keys(self) -> KeyRing:
        """The keys in force."""
        if self._keys is None:
            raise GatewayUnavailable("The gateway is starting. Try again in a second.", retry_after=1)
        return self._keys

    @property
    def store(self) -> Store:
        """The store in force."""
        if self._store is None:
            raise GatewayUnavailable("The gateway is starting. Try again in a second.", retry_after=1)
        return self._store

    def finish(self, record: Record) -> None:
        """Put a request on record that was judged here, and settle what it held, unless its end is on record."""
        if self._ends.claim(record.plan.request_id):
            self._finish(record)

    def finish_unjudged(self, record: Record) -> None:
        """Put a request on record that was heard to be over, unless somebody judges it at this moment, or has."""
        if self._ends.announce(record.plan.request_id):
            asyncio.get_running_loop().call_later(MOMENT, self._finish_unclaimed, record)

    def _finish_unclaimed(self, record: Record) -> None:
        if not self._ends.is_claimed(record.plan.request_id):
            self._finish(record)

    def _finish(self, record: Record) -> None:
        plan = record.plan
        if plan.reservation is not None:
            spent = settlement.spent(plan, record.attempt, record.outcome, record.usage)
            self.store.settle(plan.reservation, spent)
            record = msgspec.structs.replace(record, spent=spent)
        self.recorder.finished(record)

    def set_aside(self, cluster: str, seconds: int) -> None:
        """Leave a route out of new plans for a while (SPEC 5)."""
        self._aside[cluster] = max(self._aside.get(cluster, 0.0), time.monotonic() + seconds)

    def routes_aside(self) -> frozenset[str]:
        """Name the routes that are set aside now."""
        if not self._aside:
            return frozenset()
        now = time.monotonic()
        self._aside = {cluster: until for cluster, until in self._aside.items() if until > now}
        return frozenset(self._aside)

    @staticmethod
    def new_request_id() -> str:
        """Make a request's id."""
        return "req_" + secrets.token_hex(16)
