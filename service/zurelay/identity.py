"""Which workload calls: by its certificate, or the word of a trusted proxy; never by what a client writes (SPEC 12)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping

import msgspec

from zurelay.errors import Unauthenticated
from zurelay.model import Identity, IdentityMode

FORWARDED = "x-forwarded-client-cert"

# spiffe://TRUST_DOMAIN/ns/NAMESPACE/sa/SERVICE_ACCOUNT: how Istio and Kubernetes name a workload. A namespace is a
# label of RFC 1123, a service account a name of such labels (Kubernetes, "Object Names and IDs").
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_NAMESPACE = re.compile(_LABEL)
_ACCOUNT = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*")
_WORKLOAD = re.compile(rf"spiffe://([^/]+)/ns/({_NAMESPACE.pattern})/sa/({_ACCOUNT.pattern})")
# One pair of an XFCC element; a quoted value may hold anything, with quotes escaped by a backslash.
_PAIR = re.compile(r'\s*([A-Za-z]+)=(?:"((?:[^"\\]|\\.)*)"|([^";,]*))\s*')


class Workload(msgspec.Struct, frozen=True):
    """Who calls, as Kubernetes names it."""

    namespace: str
    service_account: str

    @property
    def name(self) -> str:
        """The workload, written NAMESPACE/SERVICE_ACCOUNT."""
        return f"{self.namespace}/{self.service_account}"


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """What Envoy says of the other side of a connection: its certificate's URIs, joined by commas, and its address.

    A comma within a URI looks the same as one between two.
    """

    uris: str = ""
    address: str = ""


class Identifier:
    """How workloads are recognised under one configuration."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._trusted = tuple(ipaddress.ip_network(network) for network in identity.trusted)

    def workload(self, peer: Peer, headers: Mapping[str, str]) -> Workload | None:
        """Give the caller's workload; None where none is looked for, or an untrusted peer only claims one.

        A certificate that proves no single workload of ours is a 401: it was shown to prove one.
        """
        mode = self._identity.mode
        if mode is IdentityMode.MTLS:
            return self._only([peer.uris] if peer.uris else [], joined=peer.uris.count(","))
        if mode is IdentityMode.FORWARDED and self._trusts(peer.address):
            told = headers.get(FORWARDED)
            return self._only(last_uris(told)) if told else None
        return None

    def _trusts(self, address: str) -> bool:
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        mapped = getattr(found, "ipv4_mapped", None)
        return any((mapped or found) in network for network in self._trusted)

    def _only(self, uris: list[str], joined: int = 0) -> Workload:
        """Read the identity; a certificate has one URI and no more (SPIFFE X.509-SVID, 2)."""
        if len(uris) + joined != 1:
            raise Unauthenticated(
                f"The client certificate names {_count(len(uris) + joined)}; it must name one, its SPIFFE identity."
            )
        match = _WORKLOAD.fullmatch(uris[0])
        if match is None or match[1] != self._identity.trust_domain:
            raise Unauthenticated(
                "The client certificate's identity is no workload of this mesh: "
                f"expected spiffe://{self._identity.trust_domain}/ns/NAMESPACE/sa/SERVICE_ACCOUNT."
            )
        return Workload(match[2], match[3])


def can_be_called(namespace: str | None, service_account: str | None) -> bool:
    """Tell whether a workload may have these names, as far as they are given."""
    return (namespace is None or _NAMESPACE.fullmatch(namespace) is not None) and (
        service_account is None or _ACCOUNT.fullmatch(service_account) is not None
    )


def _count(uris: int) -> str:
    return f"{uris} URIs" if uris else "no URI"


def last_uris(header: str) -> list[str]:
    """Give the URIs of the last element of x-forwarded-client-cert: that of the proxy nearest to us.

    Elements are parted by commas, pairs by semicolons, outside of quotes (Envoy, HTTP header manipulation). An element
    that can't be read has no URI.
    """
    uris: list[str] = []
    place = 0
    while place < len(header):
        match = _PAIR.match(header, place)
        if match is None:
            return []
        place = match.end()
        if match[1].lower() == "uri":
            uris.append(re.sub(r"\\(.)", r"\1", match[2]) if match[2] is not None else match[3].strip())
        if place < len(header):
            if header[place] not in ";,":
                return []
            if header[place] == ",":
                uris = []
            place += 1
    return uris
