"""One pod's life: built, started, asked, reconfigured, ended. `make test-pod` runs it; it needs root and podman."""

from __future__ import annotations

import os
import pathlib
import signal
from collections.abc import Iterator

import openai
import pytest

from e2e.harness import Provider, until
from e2e.keys import key_of, write_keys
from pod import host, images
from pod.host import Podman
from pod.kubelet import Pod, Volumes, pod_of
from pod.manifest import KEYS, PROVIDER, Manifest

PROVIDER_PORT = 9100
SECRET = "of-the-provider-alone"
_COMPILERS = "import shutil; print([each for each in ('cc', 'gcc', 'g++', 'clang', 'make') if shutil.which(each)])"
_MARGIN = 70 << 20  # with a base of 130 MB the image stays below 200


@pytest.fixture(scope="session", name="podman")
def _podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    missing = host.why_not() or host.install()
    if missing is not None:
        assert "ZURELAY_REQUIRE_POD" not in os.environ, missing
        pytest.skip(missing)
    podman = Podman(tmp_path_factory.mktemp("podman"))
    # Who ends a run early ends it by SIGTERM: the pod goes then too.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    yield podman
    signal.signal(signal.SIGTERM, before)
    podman("image", "rm", "--force", "--ignore", images.SIDECAR, images.ENVOY)
    podman("image", "prune", "--force", "--external")  # what a build that was ended left, too


@pytest.fixture(scope="session", name="built")
def _built(podman: Podman, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    directory = tmp_path_factory.mktemp("images")
    images.build(podman, directory)
    return directory


@pytest.fixture(scope="session", name="volumes")
def _volumes(tmp_path_factory: pytest.TempPathFactory) -> Volumes:
    directory = tmp_path_factory.mktemp("volumes")
    for path in (directory, *directory.parents[:2]):
        path.chmod(0o755)
    return Volumes(directory)


@pytest.fixture(scope="session", name="pod")
def _pod(
    podman: Podman,
    built: pathlib.Path,  # noqa: ARG001  # the images must be there
    volumes: Volumes,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Pod]:
    manifest = Manifest(PROVIDER_PORT, {"m": "m"})
    keys = tmp_path_factory.mktemp("keys")
    write_keys(keys, team={})
    objects = {
        "zurelay": manifest.config_map,
        KEYS: {"keys.yaml": (keys / "keys.yaml").read_text()},
        PROVIDER: {"api-key": f"{SECRET}\n"},
    }
    made = pod_of(manifest.deployment, volumes, objects)
    with Pod(podman, made, tmp_path_factory.mktemp("pod")) as pod:
        yield pod


@pytest.fixture(scope="session", name="provider")
def _provider(pod: Pod) -> Iterator[Provider]:
    provider = pod.inside(lambda: Provider(credential=SECRET, port=PROVIDER_PORT)).result()
    yield provider
    provider.stop()


def ask(model: str) -> str:
    """Ask a model as an application does."""
    with openai.OpenAI(base_url="http://127.0.0.1:8080/v1", api_key=key_of("team"), max_retries=0) as client:
        answer = client.chat.completions.create(model=model, messages=[{"role": "user", "content": "hi"}])
        return str(answer.choices[0].message.content)


def stream(model: str, fault: str) -> Iterator[str]:
    """The same as a stream; its pieces."""
    with openai.OpenAI(base_url="http://127.0.0.1:8080/v1", api_key=key_of("team"), max_retries=0) as client:
        for chunk in client.chat.completions.create(
            model=model, messages=[{"role": "user", "content": "hi"}], stream=True, extra_body={"simulate": fault}
        ):
            yield (chunk.choices[0].delta.content or "") if chunk.choices else ""


def test_the_image_is_small_has_no_compiler_and_is_the_same_when_built_again(
    podman: Podman, built: pathlib.Path
) -> None:
    ours, base = (
        int(podman("image", "inspect", "--format", "{{.Size}}", name)) for name in (images.SIDECAR, images.BASE)
    )
    found = podman("run", "--rm", "--network", "none", "--entrypoint", "python3", images.SIDECAR, "-c", _COMPILERS)

    assert ours - base < _MARGIN
    assert found == "[]"
    before = podman("image", "inspect", "--format", "{{.Id}}", images.SIDECAR)
    assert images.sidecar(podman, built, "--no-cache") == before


def test_it_starts_without_root_and_is_ready(pod: Pod) -> None:
    until(lambda: pod.probe(8082, "/livez")[0] == 200, 30)
    until(lambda: pod.probe(8081, "/readyz")[0] == 200, 30)

    assert pod.probe(8082, "/readyz") == (200, '{"ready":true,"problems":[]}\n')
    assert pod.exec("sidecar", "id", "-u") == pod.exec("envoy", "id", "-u") == "65532"


def test_chat_and_streams_are_answered(pod: Pod, provider: Provider) -> None:
    assert pod.inside(lambda: ask("m")).result()
    assert "".join(pod.inside(lambda: list(stream("m", "tokens:5"))).result())
    assert [record.status for record in provider.requests] == [200, 200]


def test_secrets_are_where_they_are_needed_alone(pod: Pod) -> None:
    (mounted,) = pod.exec("envoy", "sh", "-c", "ls /etc/zurelay/credentials/*/*").split()

    assert pod.exec("envoy", "cat", mounted) == SECRET
    assert pod.exec("sidecar", "ls", "/etc/zurelay").split() == ["config", "keys"]
    assert pod.exec("envoy", "ls", "/etc/zurelay").split() == ["credentials"]


@pytest.mark.usefixtures("provider")
def test_a_swapped_config_map_is_taken_up(pod: Pod, volumes: Volumes) -> None:
    volumes.publish("config", Manifest(PROVIDER_PORT, {"m": "m", "fresh": "other"}).config_map)

    def answers() -> bool:
        try:
            return bool(pod.inside(lambda: ask("fresh")).result())
        except openai.NotFoundError:
            return False

    until(answers, 10)
    assert pod.probe(8081, "/readyz")[0] == 200


def test_a_stream_is_served_to_its_end_when_the_pod_is_ended(pod: Pod, provider: Provider) -> None:
    provider.reset()
    pieces = pod.inside(lambda: list(stream("m", "tokens:20+gap:0.2")))
    provider.until(lambda records: len(records) == 1)

    pod.end()

    assert pieces.done()
    assert len([piece for piece in pieces.result() if piece]) == 20
    assert '"message":"drained"' in pod.log("sidecar")
