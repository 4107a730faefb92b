"""What `up` and `sidecar` have in common before anything runs: options, the configuration, what the machine allows."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import msgspec

from zurelay import envoy, stores
from zurelay.supervise import demo, machine, rundir
from zurelay.supervise.loading import Loaded
from zurelay.supervise.loading import load as load_files

_log = logging.getLogger("zurelay")

_MOST_HEAP = 2 << 30
_WATCHED = 2  # files beside the secrets': listeners and clusters


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says. Without a `config` it is the demo; `run_dir` None makes a new directory.

    `envoy_memory` is what Envoy's own container may use, in bytes; 0: Envoy shares this machine with us.
    """

    config: Path | None = None
    port: int | None = None
    status_port: int | None = None
    run_dir: Path | None = None
    envoy_binary: str | None = None
    drain_seconds: float = 600.0
    status_listen: tuple[str, int] | None = None
    envoy_memory: int = 0


def load(options: Options, provider_port: int | None, *, elsewhere: bool = False) -> Loaded:
    """Load the configuration, and let the command line have its way."""
    loaded = load_files(options.config or demo.CONFIG, os.environ, elsewhere=elsewhere)
    settings = loaded.settings
    if provider_port is not None:
        settings = demo.at_port(settings, provider_port)
    listen, status = settings.listen, settings.status
    if options.port is not None:
        listen = msgspec.structs.replace(listen, port=options.port)
        if options.config is None:
            status = msgspec.structs.replace(status, port=options.port + 1)
    if options.status_port is not None:
        status = msgspec.structs.replace(status, port=options.status_port)
    return msgspec.structs.replace(loaded, settings=msgspec.structs.replace(settings, listen=listen, status=status))


def check_store(options: Options, loaded: Loaded) -> None:
    """See that the store can be used before anything starts; the demo's is made in its run directory."""
    if options.config is not None:
        stores.check(loaded.settings.store)


def home(options: Options, directory: rundir.RunDirectory) -> Path:
    """Give the directory in which relative paths of the configuration start."""
    return directory.path if options.config is None else options.config.absolute().parent


def heap(options: Options) -> int:
    """Give the bytes that Envoy's heap may have, before it begins to shed load."""
    if options.envoy_memory:
        return options.envoy_memory * 4 // 5  # code, stacks and what the allocator keeps come on top
    return min(_MOST_HEAP, machine.memory() // 2)


def raise_file_limit() -> int:
    """Let as many files be open as may be, and warn where that is few."""
    files = machine.raise_file_limit()
    if files < machine.WANTED_FILES:
        _log.warning(
            "only %d files may be open, which is enough for about %d streams at once;"
            " raise the hard limit (ulimit -Hn, LimitNOFILE=) to %d or more",
            files,
            files // 4,
            machine.WANTED_FILES,
        )
    return files


def check_watches(loaded: Loaded) -> None:
    """Warn where Envoy couldn't watch all of its files: it takes one inotify instance each, and aborts without."""
    needed = len(envoy.secrets(loaded.settings)) + _WATCHED
    allowed = machine.watches()
    if allowed is not None and needed > allowed // 2:
        _log.warning(
            "Envoy watches %d files, one for each credential and certificate, and a user of this machine may watch %d;"
            " beyond that Envoy aborts: raise fs.inotify.max_user_instances (sysctl) to %d or more",
            needed,
            allowed,
            4 * needed,
        )
