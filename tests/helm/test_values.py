"""values.yaml, its schema and the README's table say the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from helm.charts import at, template
from tools import chart, helm

Object = dict[str, Any]
TEXT = (chart.CHART / "values.yaml").read_text()
VALUES = yaml.safe_load(TEXT)
SCHEMA = json.loads((chart.CHART / "values.schema.json").read_text())
# Where the values' keys are Kubernetes' or the product's own, which check them themselves.
FREE = {"config": {"listen", "status", "store", "workers"}, "": {"global"}}


def objects(schema: Object, values: Any, path: str = "") -> Iterator[tuple[str, Object, Object]]:
    """Every mapping whose keys the chart chose: its path, its schema, its default."""
    if "properties" in schema:
        yield path, schema, values
        for key, child in schema["properties"].items():
            yield from objects(child, values.get(key), f"{path}.{key}".lstrip("."))


OBJECTS = {path or "the root": (path, schema, values) for path, schema, values in objects(SCHEMA, VALUES)}


@pytest.mark.parametrize(("path", "schema", "values"), OBJECTS.values(), ids=OBJECTS)
def test_the_schema_knows_each_value_and_no_other(path: str, schema: Object, values: Object) -> None:
    assert schema["additionalProperties"] is False
    assert set(values) == set(schema["properties"]) - FREE.get(path, set())


@pytest.mark.parametrize("path", [path for path, _, _ in OBJECTS.values()], ids=OBJECTS)
def test_a_misspelt_key_is_told_with_its_place(path: str) -> None:
    _, complaint = template(at(f"{path}.mispelt".lstrip("."), 1))
    assert "mispelt" in complaint
    assert not path or path.rpartition(".")[2] in complaint


@pytest.mark.parametrize("major", helm.MAJORS)
def test_the_defaults_pass_the_schema_and_lack_a_catalog_alone(major: int) -> None:
    done = helm.run(major, "template", "zurelay", str(chart.CHART))
    assert done.returncode == 1
    lines = done.stderr.partition("these values can't be used:\n")[2].split("\n\n")[0].splitlines()
    assert [line.split(":")[0].strip() for line in lines] == [
        "config.models",
        "config.providers",
        "keys.existingSecret.name",
    ]


def test_every_value_has_a_word_about_it_in_the_readme() -> None:
    text = (chart.CHART / "README.md").read_text()
    found = chart.values(TEXT)
    assert chart.readme(text, found) == text, "make chart writes it again"
    assert len(found) > 100
    assert all(value.meaning[0].isupper() or value.meaning[0] == "`" for value in found)


WITHOUT_WORDS = {
    "a value": "# -- First\na: 1\nb: 2\n",
    "an empty mapping": "a: {}\n",
    "a value inside": "a:\n  # -- First\n  b: 1\n  c: 2\n",
    "a comment that isn't above": "# -- First\n\na: 1\n",
}


@pytest.mark.parametrize("text", WITHOUT_WORDS.values(), ids=WITHOUT_WORDS)
def test_a_value_without_a_word_is_an_error(text: str) -> None:
    with pytest.raises(chart.ChartError, match="has no `# --` comment"):
        chart.values(text)


def test_a_value_is_shown_with_its_default() -> None:
    text = "# -- One | two\na: {b: [1, x]}\nc:\n  # -- Three\n  d: null\n"
    assert chart.values(text) == [
        chart.Value("a", '{"b":[1,"x"]}', "One | two"),
        chart.Value("c.d", "null", "Three"),
    ]


def test_a_readme_without_marks_is_an_error() -> None:
    with pytest.raises(chart.ChartError, match="marks"):
        chart.readme("# nothing\n", [])


def test_the_chart_is_of_the_product_s_version() -> None:
    project = (chart.ROOT / "pyproject.toml").read_text()
    about = yaml.safe_load((chart.CHART / "Chart.yaml").read_text())
    assert f'\nversion = "{about["appVersion"]}"\n' in project
