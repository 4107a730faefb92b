"""The values that pages show can be used as they stand."""

from __future__ import annotations

import pathlib
import re

import pytest
import yaml

from helm.charts import Values, at, containers, golden, merged, rendered
from helm.commands import unknown
from tools import chart

PAGES = (chart.ROOT / "docs" / "kubernetes.md", chart.CHART / "README.md")
OWN_ENVOY = chart.ROOT / "docs" / "bring-your-own-envoy.md"
EVERY_PAGE = [chart.ROOT / "README.md", chart.CHART / "README.md", *(chart.ROOT / "docs").rglob("*.md")]
SHOWN = {
    f"{page.name} {number}": yaml.safe_load(block)
    for page in PAGES
    for number, block in enumerate(re.findall(r"```yaml\n(# values.yaml\n.*?)```", page.read_text(), re.DOTALL), 1)
}


@pytest.mark.parametrize("values", SHOWN.values(), ids=SHOWN)
def test_values_on_a_page_render(values: Values) -> None:
    ours = at("config.providers.openai.api_key.existingSecret", None) if values.get("mode") else {}
    assert rendered(merged(ours, values))


def test_both_pages_show_some() -> None:
    assert {name.split()[0] for name in SHOWN} == {page.name for page in PAGES}


def test_the_page_tells_the_addresses_that_the_chart_trusts() -> None:
    text = PAGES[0].read_text()
    istio = (chart.CHART / "templates" / "_config.tpl").read_text()
    addresses = re.findall(r'"([0-9.:]+/[0-9]+)"', istio)
    assert len(addresses) == 2
    assert all(address in text for address in addresses)


@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: str(page.relative_to(chart.ROOT)))
def test_commands_on_a_page_are_the_product_s(page: pathlib.Path) -> None:
    blocks = re.findall(r"^ *```[a-z]+\n(.*?)```", page.read_text(), re.DOTALL | re.MULTILINE)
    text = "\n".join(blocks).replace("\\\n", " ")
    lines = re.findall(r"^ *(?:\$ )?zurelay ([a-z][^#>|\n]*)", text, re.MULTILINE)
    lines += re.findall(r"`zurelay ([a-z][^`\n]*)`", page.read_text())
    assert [wrong for line in lines for wrong in unknown(line.split())] == []


@pytest.mark.parametrize("name", chart.RENDERS)
def test_arguments_of_a_pod_are_the_product_s(name: str) -> None:
    ours = [each for each in containers(golden(name)).values() if each["name"] in ("sidecar", "prepare")]
    assert ours
    assert [wrong for each in ours for wrong in unknown(each["args"])] == []


def test_values_named_beside_a_link_to_their_list_exist() -> None:
    named = re.findall(r"`([A-Za-z.]+)` in its \[values\]", OWN_ENVOY.read_text())
    assert named
    known = {value.path.partition(".")[0] for value in chart.values((chart.CHART / "values.yaml").read_text())}
    assert set(named) <= known
