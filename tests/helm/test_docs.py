"""The values that pages show can be used as they stand."""

from __future__ import annotations

import re

import pytest
import yaml

from helm.charts import Values, at, merged, rendered
from tools import chart

PAGES = (chart.ROOT / "docs" / "kubernetes.md", chart.CHART / "README.md")
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
