import datetime as dt
from pathlib import Path

import pytest

from zurelay.model import Secret
from zurelay.supervise.loading import LoadError, load, secret_variables

DIGEST = "0" * 64
PROVIDERS = 'providers: {p: {base_url: "http://127.0.0.1:9/v1", format: openai}}\n'
MODELS = "models: {m: {context_window: 1000, routes: [{provider: p, model: m}]}}\n"
OPEN = PROVIDERS + MODELS + "auth: {require: none}\n"
CLOSED = PROVIDERS + MODELS + "auth: {require: key, keys: keys.yaml}\n"
KEYS = f'keys: [{{name: team, digest: "sha256:{DIGEST}"}}]\n'


def told(path: Path, environ: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(LoadError) as caught:
        load(path, environ or {})
    return [str(problem).replace(f"{path.parent}/", "") for problem in caught.value.problems]


def write(directory: Path, text: str, **files: str) -> Path:
    for name, content in files.items():
        (directory / f"{name}.yaml").write_text(content)
    path = directory / "zurelay.yaml"
    path.write_text(text)
    return path


def test_a_configuration_comes_with_its_texts(tmp_path: Path) -> None:
    loaded = load(write(tmp_path, CLOSED, keys=KEYS), {})

    assert (loaded.text, loaded.keys_text) == (CLOSED, KEYS)
    assert list(loaded.settings.models) == ["m"]
    assert [key.name for key in loaded.keys] == ["team"]


def test_paths_start_at_the_configurations_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        'providers: {p: {base_url: "https://a.test/v1", format: openai, ca: tls/ca.pem, api_key: {file: ./secret}}}\n'
        + MODELS
        + "auth: {require: key, keys: keys.yaml}\n"
        + "listen: {tls: {cert: tls/cert.pem, key: tls/key.pem}}\n"
        + "store: {sqlite: spend.db}\n"
    )
    (tmp_path / "tls").mkdir()
    for name in ("tls/ca.pem", "tls/cert.pem", "tls/key.pem", "secret"):
        (tmp_path / name).touch()
    path = write(tmp_path, text, keys=KEYS)
    monkeypatch.chdir("/")

    found = load(path, {}).settings

    assert found.providers["p"].ca == f"{tmp_path}/tls/ca.pem"
    assert found.providers["p"].api_key == Secret(file=f"{tmp_path}/secret")
    assert found.listen.tls is not None
    assert (found.listen.tls.cert, found.listen.tls.key) == (f"{tmp_path}/tls/cert.pem", f"{tmp_path}/tls/key.pem")
    assert found.auth.keys == f"{tmp_path}/keys.yaml"
    assert found.store.sqlite == f"{tmp_path}/spend.db"


def test_every_problem_of_the_file_is_told_with_its_line(tmp_path: Path) -> None:
    path = write(tmp_path, OPEN.replace("openai", "opnai").replace("context_window", "contex_window"))

    assert [line.partition(": ")[2].partition(": ")[0] for line in told(path)] == ["line 1", "line 2", "line 2"]


def test_problems_of_the_keys_name_their_own_file(tmp_path: Path) -> None:
    (problem,) = told(write(tmp_path, CLOSED, keys="keys: [{name: team}]\n"))

    assert problem.startswith("keys.yaml: line 1: keys[0].digest: missing")


def test_a_limit_in_usd_needs_prices(tmp_path: Path) -> None:
    keys = KEYS.replace("}]", ", limits: {usd_per_day: 1}}]")

    (problem,) = told(write(tmp_path, CLOSED, keys=keys))

    assert problem.startswith("zurelay.yaml: models.m.price: missing; the key team limits USD")


def test_problems_between_the_files_are_told_at_once(tmp_path: Path) -> None:
    keys = KEYS.replace("}]", ", limits: {usd_per_day: 1}, models: [none]}]")

    price, model = told(write(tmp_path, CLOSED, keys=keys))

    assert price.startswith("zurelay.yaml: models.m.price: missing")
    assert model.startswith("keys.yaml: keys.team.models: no model is called none")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(None, "zurelay.yaml: can't be read: No such file or directory", id="not there"),
        pytest.param(b"a: 1\nb: \xff\n", "zurelay.yaml: line 2: isn't UTF-8; save it as UTF-8", id="not UTF-8"),
        pytest.param(b"#" * (17 << 20), "zurelay.yaml: is over 16 MiB; is it the right file?", id="huge"),
    ],
)
def test_a_file_that_can_not_be_read_says_why(tmp_path: Path, content: bytes | None, problem: str) -> None:
    path = tmp_path / "zurelay.yaml"
    if content is not None:
        path.write_bytes(content)

    assert told(path) == [problem]


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    assert told(tmp_path)[0].endswith("can't be read: Is a directory")


WITH_SECRETS = (
    "providers:\n"
    '  a: {base_url: "http://127.0.0.1:9/v1", format: openai, api_key: {env: A_KEY}}\n'
    '  p: {base_url: "http://127.0.0.1:9/v1", format: openai, api_key: {file: /no/such/secret}}\n'
) + OPEN.removeprefix(PROVIDERS)


def test_absent_secrets_are_problems(tmp_path: Path) -> None:
    lines = told(write(tmp_path, WITH_SECRETS), {"A_KEY": ""})

    assert [line.partition(": ")[2] for line in lines] == [
        "line 2: providers.a.api_key.env: the environment variable A_KEY is empty",
        "line 3: providers.p.api_key.file: the file /no/such/secret isn't there or can't be read",
    ]


def test_secrets_that_are_elsewhere_are_not_looked_for(tmp_path: Path) -> None:
    loaded = load(write(tmp_path, WITH_SECRETS), {}, elsewhere=True)

    assert secret_variables(loaded.settings) == {"A_KEY"}


def test_two_readings_of_the_same_files_are_equal(tmp_path: Path) -> None:
    keys = KEYS.replace("}]", ", expires: 2027-01-01T00:00:00Z}]")
    path = write(tmp_path, CLOSED, keys=keys)

    assert load(path, {}) == load(path, {})
    assert load(path, {}).keys[0].expires == dt.datetime(2027, 1, 1, tzinfo=dt.UTC)


def test_aliases_in_the_keys_rules_become_ids(tmp_path: Path) -> None:
    aliased = CLOSED.replace("context_window", "aliases: [nick], context_window")
    path = write(tmp_path, aliased, keys=KEYS.replace("}]", ", models: [nick]}]"))
    assert ("m",) == load(path, {}).keys[0].models


def test_a_key_for_a_model_that_is_not_there_is_a_problem_of_the_keys_file(tmp_path: Path) -> None:
    (problem,) = told(write(tmp_path, CLOSED, keys=KEYS.replace("}]", ", models: [nick]}]")))
    assert problem.startswith("keys.yaml: keys.team.models: ")


WRONG_VARIABLES = {
    "another protocol": ({"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, "only grpc is spoken"),
    "no certificate": ({"OTEL_EXPORTER_OTLP_CERTIFICATE": "/nowhere.pem"}, "/nowhere.pem, which can't be read"),
}


@pytest.mark.parametrize(("environ", "said"), WRONG_VARIABLES.values(), ids=WRONG_VARIABLES)
def test_variables_of_telemetry_are_checked_with_the_file(tmp_path: Path, environ: dict[str, str], said: str) -> None:
    path = write(tmp_path, OPEN + "telemetry: {otlp: 'http://127.0.0.1:4317'}\n")

    (problem,) = told(path, environ)

    assert "zurelay.yaml: telemetry: " in problem
    assert said in problem
