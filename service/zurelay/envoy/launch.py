"""The command line that starts Envoy."""

from __future__ import annotations

from zurelay.envoy.runtime import BOOTSTRAP_FILE, Runtime


def command(binary: str, runtime: Runtime, drain_seconds: int) -> list[str]:
    """Give Envoy's arguments; `drain_seconds` is how long a drained or replaced listener keeps its streams.

    It must be above `timeouts.total`, or a change of listeners cuts streams.
    """
    return [
        binary,
        "--config-path",
        runtime.path(BOOTSTRAP_FILE),
        "--concurrency",
        str(runtime.concurrency),
        "--drain-time-s",
        str(drain_seconds),
        # Clients are told to leave at the first answer, not with a chance that grows over the drain time.
        "--drain-strategy",
        "immediate",
        # It would share memory with any other Envoy of this machine that has the same base id.
        "--disable-hot-restart",
        "--log-level",
        "warning",
    ]
