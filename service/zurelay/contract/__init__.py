"""What the sidecar needs of the Envoy that it serves, compared with what that Envoy tells of itself."""

from zurelay.contract.check import problems
from zurelay.contract.facts import Envoy, NotEnvoyError, Wanted, envoy

__all__ = ["Envoy", "NotEnvoyError", "Wanted", "envoy", "problems"]
