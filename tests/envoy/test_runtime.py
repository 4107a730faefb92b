from typing import Any

import pytest

from zurelay.envoy import Runtime


def made(**facts: Any) -> Runtime:
    good = {
        "directory": "/run/zurelay",
        "worker_sockets": ("/run/zurelay/worker-0.sock",),
        "status_socket": "/run/zurelay/status.sock",
        "ca_bundle": "/etc/ssl/cert.pem",
    }
    return Runtime(**{**good, **facts})


def test_a_file_of_the_run_directory_has_an_absolute_path() -> None:
    assert made().path("x.json") == "/run/zurelay/x.json"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"directory": "run"}, "run/egress.sock: not an absolute path"),
        ({"status_socket": "status.sock"}, "status.sock: not an absolute path"),
        ({"worker_sockets": ("w.sock",)}, "w.sock: not an absolute path"),
        ({"worker_sockets": ()}, "at least one worker socket"),
        ({"directory": "/" + "x" * 96}, "too long for a Unix socket"),
        ({"directory": "/" + "é" * 48}, "too long for a Unix socket"),
    ],
)
def test_paths_that_envoy_could_not_use_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(**change)


def test_the_longest_path_that_fits_is_taken() -> None:
    directory = "/" + "x" * (107 - len("/egress.sock") - 1)

    assert len(made(directory=directory).path("egress.sock")) == 107
