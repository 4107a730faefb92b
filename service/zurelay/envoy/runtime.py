"""Where this run's files and sockets are, and how much Envoy may take."""

from __future__ import annotations

import msgspec

BOOTSTRAP_FILE = "bootstrap.json"
LISTENERS_FILE = "listeners.json"
CLUSTERS_FILE = "clusters.json"
ADMIN_SOCKET = "admin.sock"
EGRESS_SOCKET = "egress.sock"

# sun_path holds 108 bytes with its final zero (unix(7)).
_LONGEST_SOCKET = 107


class Runtime(msgspec.Struct, frozen=True, kw_only=True):
    """One run of Envoy. `directory` and all sockets are absolute paths; `heap` is in bytes.

    `worker_sockets` are the gRPC sockets of the sidecar's workers, `status_socket` is where it answers
    /readyz, /metrics and /drain, `ca_bundle` holds the authorities trusted for providers without their own `ca`.
    `environ` are the variables that say where telemetry goes.
    """

    directory: str
    worker_sockets: tuple[str, ...]
    status_socket: str
    ca_bundle: str
    concurrency: int = 1
    heap: int = 2 << 30
    connections: int = 10_000
    environ: dict[str, str] = {}

    def __post_init__(self) -> None:
        if not self.worker_sockets:
            raise ValueError("Envoy needs at least one worker socket of the sidecar")
        for path in (self.path(EGRESS_SOCKET), self.status_socket, *self.worker_sockets):
            if not path.startswith("/"):
                raise ValueError(f"{path}: not an absolute path; Envoy may run in another directory")
            if len(path.encode()) > _LONGEST_SOCKET:
                raise ValueError(
                    f"{path}: too long for a Unix socket ({_LONGEST_SOCKET} bytes); use a shorter directory"
                )

    def path(self, name: str) -> str:
        """Give the absolute path of a file in the run directory."""
        return f"{self.directory}/{name}"
