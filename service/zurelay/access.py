"""Who calls and what they may use: API keys (SPEC 11) and the rules that come with them."""

from __future__ import annotations

import datetime as dt
import fnmatch
import hashlib
import hmac
from collections.abc import Iterable, Mapping

import msgspec

from zurelay.errors import Forbidden, Unauthenticated
from zurelay.identity import Workload
from zurelay.model import AUTO_ID, Key, Model, Require


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Whoever sent a request. `key` is None where none is required, `workload` where none is proved."""

    key: Key | None = None
    workload: Workload | None = None

    @property
    def smart_routing(self) -> bool:
        """Whether other models may answer, as far as the key says."""
        return self.key is None or self.key.smart_routing

    def may_use(self, name: str) -> bool:
        """Tell whether the key's globs allow a model id."""
        if self.key is None or self.key.models is None:
            return True
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in self.key.models)

    def demand(self, model: Model) -> None:
        """Refuse a model that the key doesn't allow."""
        if not self.may_use(model.id):
            raise Forbidden(f"This key may not use {model.id}. GET /v1/models lists what it may use.", param="model")

    @property
    def may_use_auto(self) -> bool:
        """Whether the key allows Auto, which may then pick any model."""
        return self.may_use(AUTO_ID)


PREFIX = "zk_"  # what our keys begin with (SPEC 11)
_NO_KEY = "The request has no API key: send it as `authorization: Bearer zk_...` or `x-api-key: zk_...`."
_NO_WORKLOAD = (
    "The connection proves no workload: call through the mesh, with a certificate that names one SPIFFE identity."
)
_NEITHER = (
    "The request has no API key, and its connection proves no workload: send a key as `authorization: Bearer zk_...` "
    "or `x-api-key: zk_...`, or call through the mesh."
)

_TWO_KEYS = "The request has two different API keys, one in authorization and one in x-api-key: send one of them."


class KeyRing:
    """The keys of one configuration, found by digest."""

    def __init__(self, keys: Iterable[Key], require: Require) -> None:
        self._keys = {key.digest: key for key in keys}
        self._require = require

    def authenticate(self, headers: Mapping[str, str], now: dt.datetime, workload: Workload | None = None) -> Caller:
        """Find a request's caller by `authorization: Bearer` or `x-api-key`; 401 where what is required is missing.

        Where workloads are enough, clients that must send some key may send any that isn't one of ours.
        """
        if self._require is Require.NONE:
            return Caller(workload=workload)
        if self._require is Require.WORKLOAD:
            if workload is None:
                raise Unauthenticated(_NO_WORKLOAD)
            return Caller(workload=workload)
        secret = presented(headers)
        if self._require is Require.EITHER and workload is not None and not (secret or "").startswith(PREFIX):
            return Caller(workload=workload)
        return Caller(key=self._key(secret, now), workload=workload)

    def _key(self, secret: str | None, now: dt.datetime) -> Key:
        """Find the key that was presented, and that is good now."""
        if secret is None:
            raise Unauthenticated(_NO_KEY if self._require is Require.KEY else _NEITHER)
        digest = hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()
        key = self._keys.get(digest)
        # The look-up goes by the digest, so its timing tells nothing of a key; the compare is for good measure.
        if key is None or not hmac.compare_digest(key.digest, digest):
            raise Unauthenticated("This API key is unknown: check that it was copied whole, or ask for a new one.")
        if key.disabled:
            raise Unauthenticated(f"The API key {key.name} is disabled: ask its owner for another.")
        if key.expires is not None and now >= key.expires:
            raise Unauthenticated(f"The API key {key.name} has expired: ask its owner for another.")
        return key


def presented(headers: Mapping[str, str]) -> str | None:
    """Give the key that the headers carry; the Bearer scheme's name has no case (RFC 9110, 11.1).

    Some SDKs fill both headers, one of them with what is meant for somebody else: ours is the one that looks like it.
    """
    scheme, _, token = headers.get("authorization", "").strip().partition(" ")
    bearer = token.strip() if scheme.lower() == "bearer" else ""
    found = [key for key in (bearer, headers.get("x-api-key", "").strip()) if key]
    ours = {key for key in found if key.startswith(PREFIX)}
    if len(ours) > 1:
        raise Unauthenticated(_TWO_KEYS)
    return next(iter(ours), next(iter(found), None))
