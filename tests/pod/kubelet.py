"""What a kubelet does, and podman doesn't: volumes whose symlink is swapped, probes, hooks, the order of the end."""

from __future__ import annotations

import ctypes
import os
import pathlib
import shutil
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self, TypeVar

import httpx
import msgspec

from e2e.harness import until
from pod import images
from pod.host import Podman

T = TypeVar("T")
USER = 65532
_CLONE_NEWNET = 0x40000000  # setns(2)


class Volumes:
    """The volumes of one pod, as directories of this machine."""

    def __init__(self, directory: pathlib.Path) -> None:
        self._directory = directory

    def publish(self, name: str, files: dict[str, str]) -> None:
        """Write a ConfigMap or Secret: a new directory, `..data` swapped to it by rename, a link for each file."""
        volume = self._directory / name
        volume.mkdir(exist_ok=True)
        fresh = volume / f"..{time.time_ns()}"
        fresh.mkdir()
        for file, text in files.items():
            (fresh / file).write_text(text)
        data, old = volume / "..data", (volume / "..data").resolve()
        (volume / "..data_tmp").symlink_to(fresh.name)
        (volume / "..data_tmp").rename(data)
        for file in files:
            if not (volume / file).is_symlink():
                (volume / file).symlink_to(f"..data/{file}")
        if old != data:
            shutil.rmtree(old)

    def empty(self, name: str) -> None:
        """Make an emptyDir for a pod with an fsGroup."""
        volume = self._directory / name
        volume.mkdir()
        os.chown(volume, 0, USER)
        volume.chmod(0o2777)

    def mount(self, volume: dict[str, Any], objects: dict[str, dict[str, str]]) -> dict[str, Any]:
        """Stand in for a volume of the manifest; `objects` are ConfigMaps and Secrets by their names."""
        name = volume["name"]
        if "emptyDir" in volume:
            self.empty(name)
        else:
            held = objects[volume["configMap"]["name"] if "configMap" in volume else volume["secret"]["secretName"]]
            items = volume.get("secret", {}).get("items") or [{"key": key, "path": key} for key in held]
            self.publish(name, {item["path"]: held[item["key"]] for item in items})
        return {"name": name, "hostPath": {"path": str(self._directory / name), "type": "Directory"}}


def pod_of(deployment: dict[str, Any], volumes: Volumes, objects: dict[str, dict[str, str]]) -> dict[str, Any]:
    """Make the pod of a Deployment as podman takes it."""
    spec = deployment["spec"]["template"]["spec"]
    spec["volumes"] = [volumes.mount(volume, objects) for volume in spec["volumes"]]
    spec["restartPolicy"] = "Never"  # podman would start an init container again that ended well
    containers = [*spec.get("initContainers", []), *spec["containers"]]
    limits = {one["name"]: one["resources"]["limits"] for one in containers}
    for container in containers:
        container["image"] = images.ENVOY if container["name"] == "envoy" else images.SIDECAR
        container["imagePullPolicy"] = "Never"
        container.pop("ports", None)  # podman would publish them on this machine
        container["securityContext"] = {**spec["securityContext"], **container["securityContext"]}
        container["env"] = [{"name": one["name"], "value": _value(one, limits)} for one in container.get("env", [])]
    # It would remove an init container that ran once, at times before it has seen its end.
    once = {"io.podman.annotations.init.container.type": "always"}
    metadata = {"name": "zurelay-test-pod", "labels": {}, "annotations": once}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _value(variable: dict[str, Any], limits: dict[str, dict[str, str]]) -> str:
    """Give a variable's value: podman knows no field of another container."""
    if "value" in variable:
        return str(variable["value"])
    amount = limits[variable["valueFrom"]["resourceFieldRef"]["containerName"]]["memory"]
    return str(int(amount[:-2]) << {"Mi": 20, "Gi": 30}[amount[-2:]])


class Pod:
    """A running pod. It is reached from inside its network namespace alone: nothing of it listens on this machine."""

    def __init__(self, podman: Podman, manifest: dict[str, Any], directory: pathlib.Path) -> None:
        self._podman = podman
        self._file = directory / "pod.json"
        self._file.write_bytes(msgspec.json.encode(manifest))
        self._pool: ThreadPoolExecutor | None = None
        self.name = manifest["metadata"]["name"]

    def __enter__(self) -> Self:
        """Start it."""
        self._remove()  # one that was left when its test was killed
        try:
            self._podman("kube", "play", "--network", "none", str(self._file))
            infra = self._podman("pod", "inspect", "--format", "{{.InfraContainerID}}", self.name)
            pid = self._podman("inspect", "--format", "{{.State.Pid}}", infra)
        except BaseException:
            self._remove()
            raise
        self._pool = ThreadPoolExecutor(16, initializer=_enter, initargs=(f"/proc/{pid}/ns/net",))
        return self

    def __exit__(self, *_: object) -> None:
        """Take it down, whatever state it is in."""
        self._remove()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def _remove(self) -> None:
        self._podman("pod", "rm", "--force", "--ignore", "--time", "0", self.name)

    def inside(self, call: Callable[[], T]) -> Future[T]:
        """Call something on a thread whose sockets, and its children's, are the pod's."""
        assert self._pool is not None
        return self._pool.submit(call)

    def probe(self, port: int, path: str, seconds: float = 5) -> tuple[int, str]:
        """Ask as a probe or hook does; status 0 where nobody listens."""

        def ask() -> tuple[int, str]:
            try:
                answer = httpx.get(f"http://127.0.0.1:{port}{path}", timeout=seconds)
            except httpx.TransportError as error:
                return 0, str(error)
            return answer.status_code, answer.text

        return self.inside(ask).result()

    def signal(self, container: str, name: str = "TERM") -> None:
        """Send a signal to the first process of a container."""
        self._podman("kill", "--signal", name, f"{self.name}-{container}")

    def state(self, container: str) -> str:
        """Give `running`, or the exit status."""
        form = "{{if .State.Running}}running{{else}}{{.State.ExitCode}}{{end}}"
        return self._podman("inspect", "--format", form, f"{self.name}-{container}")

    def log(self, container: str) -> str:
        """Give all that a container wrote."""
        path = self._podman("inspect", "--format", "{{.HostConfig.LogConfig.Path}}", f"{self.name}-{container}")
        return pathlib.Path(path).read_text()

    def exec(self, container: str, *command: str) -> str:
        """Run a command in a container."""
        return self._podman("exec", f"{self.name}-{container}", *command)

    def end(self) -> None:
        """End Envoy by its hook and a signal, the sidecar by a signal at the same time, as where none is native."""
        self.signal("sidecar")
        hook = self.inside(lambda: httpx.get("http://127.0.0.1:8082/drain", timeout=60).json())
        assert hook.result() == {"drained": True}
        assert self.state("sidecar") == "running"
        self.signal("envoy")
        until(lambda: self.state("envoy") == self.state("sidecar") == "0", 10)


def _enter(namespace: str) -> None:
    """Move this thread to a network namespace; threads that it starts are born there."""
    libc = ctypes.CDLL(None, use_errno=True)
    with pathlib.Path(namespace).open("rb") as file:
        if libc.setns(file.fileno(), _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
