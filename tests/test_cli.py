import json
import re
import stat
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from zurelay import keysfile
from zurelay.cli import main
from zurelay.cli_parts import address

DIGEST = "0" * 64
GOOD = """\
providers: {p: {base_url: "http://127.0.0.1:9/v1", format: openai}}
models: {m: {context_window: 1000, routes: [{provider: p, model: m}]}}
auth: {require: none}
"""
KEYS = f"""\
keys:
- {{name: a, digest: "sha256:{DIGEST}", models: [m], limits: {{requests_per_minute: 6}}, expires: 2020-01-01T00:00:00Z}}
- name: b   # the second
  digest: sha256:{"1" * 64}
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def commands(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = [path]
    for name, command in group.commands.items():
        inner = (*path, name)
        found += commands(command, inner) if isinstance(command, click.Group) else [inner]
    return found


@pytest.mark.parametrize("path", commands(main), ids=" ".join)
def test_every_command_explains_itself(path: tuple[str, ...]) -> None:
    done = run(*path, "--help")

    assert done.exit_code == 0
    assert "  Examples:\n    zurelay" in done.stdout
    assert not [line for line in done.stdout.splitlines()[1:] if line.endswith("...")], "a summary is too long"


def test_commands_are_those_of_the_specification() -> None:
    assert [" ".join(path) for path in commands(main)[1:]] == [
        "up",
        "sidecar",
        "check",
        "explain",
        "simulate",
        "envoy-config",
        "keys",
        "keys new",
        "keys list",
        "keys revoke",
        "usage",
    ]


def test_the_version_is_told() -> None:
    assert run("--version").stdout.startswith("zurelay 0.")


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["up", "--port", "0"], ["sidecar"], ["check"], ["keys", "new"], ["worker", "a", "b", "1"]],
    ids=" ".join,
)
def test_a_command_line_that_is_not_understood_ends_with_2(arguments: list[str]) -> None:
    done = run(*arguments)

    assert (done.exit_code, done.stdout) == (2, "")
    assert "Error: " in done.stderr


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("0.0.0.0:8082", ("0.0.0.0", 8082)),
        ("[::]:1", ("::", 1)),
        ("localhost:65535", ("localhost", 65535)),
        *((bad, None) for bad in ("8082", ":8082", "a:", "a:0", "a:65536", "::1:80", "[a]:80", "a:8o", "[]:80")),
    ],
)
def test_an_address_is_a_host_and_a_port(value: str, read: tuple[str, int] | None) -> None:
    if read is not None:
        assert address(value) == read
    else:
        with pytest.raises(click.BadParameter, match=re.escape(repr(value))):
            address(value)


def test_a_good_configuration_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "zurelay.yaml"
    path.write_text(GOOD)

    done = run("check", str(path))

    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == f"{path}: good: 1 models, 1 providers, 0 keys\n"
    assert json.loads(run("check", str(path), "--json").stdout) == {"ok": True, "problems": [], "warnings": []}


def test_every_problem_is_told_on_standard_error(tmp_path: Path) -> None:
    path = tmp_path / "zurelay.yaml"
    path.write_text(GOOD.replace("openai", "opnai").replace("context_window", "contex_window"))

    done = run("check", str(path))

    assert (done.exit_code, done.stdout) == (1, "")
    lines = done.stderr.splitlines()
    assert [line.removeprefix(f"{path}: ").partition(":")[0] for line in lines[:-1]] == ["line 1", "line 2", "line 2"]
    assert lines[-1] == "3 problems; nothing would start"
    assert "\x1b" not in done.stderr


def test_problems_come_as_json_too(tmp_path: Path) -> None:
    path = tmp_path / "zurelay.yaml"
    path.write_text(GOOD.replace("openai", "opnai"))

    done = run("check", str(path), "--json")

    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert told["ok"] is False
    (problem,) = told["problems"]
    assert {**problem, "message": ""} == {
        "file": str(path), "line": 1, "path": "providers.p.format", "message": "",
    }  # fmt: skip


def test_a_file_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    done = run("check", str(tmp_path / "none.yaml"))

    assert done.exit_code == 1
    assert "none.yaml: can't be read: No such file or directory" in done.stderr


def test_a_new_key_is_printed_once_with_its_entry() -> None:
    first, second = run("keys", "new", "team-a"), run("keys", "new", "team-a")

    key, entry = first.stdout.splitlines()
    assert key.startswith("zk_")
    assert key not in first.stderr + entry
    assert second.stdout.splitlines()[0] != key
    assert keysfile.parse(f"keys:\n{entry}\n")[0].name == "team-a"


def test_a_new_key_has_the_rules_that_were_asked_for() -> None:
    done = run(
        *("keys", "new", "team", "--model", "zurelay-auto", "--model", "claude-*", "--no-smart-routing"),
        *("--requests-per-minute", "60", "--tokens-per-minute", "1000", "--usd-per-day", "0.5", "--usd-per-month", "9"),
        *("--expires", "2027-01-01"),
    )

    entry = done.stdout.splitlines()[1].partition('", ')[2]
    assert entry == (
        'models: [zurelay-auto, "claude-*"], smart_routing: false, limits: {requests_per_minute: 60,'
        " tokens_per_minute: 1000, usd_per_day: 0.5, usd_per_month: 9}, expires: 2027-01-01T00:00:00Z}"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a b"], "name: expected a name"),
        (["a", "--usd-per-day", "much"], "'much' is no amount of USD"),
        (["a", "--usd-per-day", "-1"], "limits.usd_per_day: expected a number"),
        (["a", "--model", ""], "models[0]: expected text, but it is empty"),
        (["a", "--expires", "tomorrow"], "'tomorrow' does not match"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_key_that_could_not_be_read_back_is_not_made(arguments: list[str], message: str) -> None:
    done = run("keys", "new", *arguments)

    assert (done.exit_code, done.stdout) == (2, "")
    assert message in " ".join(done.stderr.split())


@pytest.fixture(name="keys")
def _keys(tmp_path: Path) -> Path:
    path = tmp_path / "keys.yaml"
    path.write_text(KEYS)
    path.chmod(0o640)
    return path


def test_keys_are_listed_a_line_each_where_no_terminal_is(keys: Path) -> None:
    done = run("keys", "list", "--keys", str(keys))

    assert done.stdout.splitlines() == [
        "name\tstate\tmodels\tsmart routing\tlimits\texpires",
        "a\texpired\tm\ton\trequests_per_minute=6\t2020-01-01 00:00:00Z",
        "b\tactive\t*\ton\t-\t-",
    ]


def test_keys_are_listed_as_json(keys: Path) -> None:
    told = json.loads(run("keys", "list", "--keys", str(keys), "--json").stdout)

    assert told["keys"][1] == {
        "name": "b",
        "state": "active",
        "models": ["*"],
        "smart_routing": True,
        "limits": {},
        "expires": None,
    }


def test_revoking_changes_one_line_of_the_file(keys: Path) -> None:
    done = run("keys", "revoke", "b", "--keys", str(keys))

    assert (done.exit_code, done.stdout) == (0, "")
    assert "b is revoked" in done.stderr
    assert keys.read_text() == KEYS.replace("# the second\n", "# the second\n  disabled: true\n")
    assert stat.S_IMODE(keys.stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["revoke", "c"], "There is no key 'c' in the file"),
        (["list", "--keys", "/nowhere.yaml"], "/nowhere.yaml: can't be read: No such file or directory"),
        (["revoke", "b", "--keys", "/nowhere.yaml"], "/nowhere.yaml: can't be read"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_can_not_be_done_with_keys_is_told(keys: Path, arguments: list[str], message: str) -> None:
    done = run("keys", *arguments, *([] if "--keys" in arguments else ["--keys", str(keys)]))

    assert done.exit_code == 1
    assert message in done.stderr
    assert keys.read_text() == KEYS


def test_problems_in_the_keys_are_told_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "keys.yaml"
    path.write_text("keys:\n- {name: a}\n")

    done = run("keys", "list", "--keys", str(path))

    assert done.exit_code == 1
    assert f"{path}: line 2: keys[0].digest: missing" in done.stderr


def test_help_is_there_without_loading_the_gateway() -> None:
    code = (
        "import sys, zurelay.cli; print([name for name in ('grpc', 'rich', 'yaml', 'msgspec') if name in sys.modules])"
    )

    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


CATALOG = """
listen: {port: 8080}
status: {port: 8081}
auth: {require: none}
providers: {p: {base_url: "http://127.0.0.1:9/v1", format: openai}}
models: {one: {routes: [{provider: p, model: e}], context_window: 1000}}
"""
REQUEST = '{"model": "one", "messages": [{"role": "user", "content": "hi"}]}'


@pytest.fixture
def catalog_file(tmp_path: Path) -> str:
    file = tmp_path / "c.yaml"
    file.write_text(CATALOG)
    return str(file)


def test_explain_prints_the_decision(catalog_file: str, tmp_path: Path) -> None:
    request = tmp_path / "request.json"
    request.write_text(REQUEST)

    done = run("explain", "--config", catalog_file, str(request))

    assert done.exit_code == 0
    assert json.loads(done.stdout)["attempts"][0]["upstream"] == "e"


def test_explain_ends_with_1_where_the_request_is_refused(catalog_file: str) -> None:
    done = CliRunner().invoke(main, ["explain", "--config", catalog_file], input="{")

    assert done.exit_code == 1
    assert json.loads(done.stdout)["error"]["code"] == "invalid_json"


def test_explain_takes_one_request_a_line_and_gives_one_decision_a_line(catalog_file: str) -> None:
    done = CliRunner().invoke(
        main, ["explain", "--config", catalog_file, "--jsonl"], input=f"{REQUEST}\n[]\n\n{REQUEST}\n"
    )

    assert done.exit_code == 0
    assert [json.loads(line).get("model") for line in done.stdout.splitlines()] == ["one", None, "one"]


@pytest.mark.parametrize("arguments", [["--key", "nobody"], []])
def test_explain_says_what_is_wrong_with_the_configuration(tmp_path: Path, arguments: list[str]) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(CATALOG if arguments else "nonsense")

    done = CliRunner().invoke(main, ["explain", "--config", str(file), *arguments], input=REQUEST)

    assert done.exit_code == 1
    assert ("nobody" if arguments else "c.yaml") in done.stderr
