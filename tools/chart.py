"""Makes again what follows from the chart: the table of values in its README, and the golden renders of the tests.

`make chart` runs it (python -m tools.chart). Each value's meaning is the `# --` comment above it in values.yaml.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import yaml

from tools import helm

ROOT = Path(__file__).parent.parent
CHART = ROOT / "helm" / "zurelay"
GOLDEN = ROOT / "tests" / "helm" / "golden"
GRAFANA = ROOT / "docs" / "grafana"
NEW, OLD = "1.34.0", "1.27.0"
# Each golden file: the values, and the cluster's version.
RENDERS = {
    "default": ("default", NEW),
    "no-native-sidecar": ("default", OLD),
    "high-availability": ("high-availability", NEW),
    "locked-down": ("locked-down", NEW),
    "istio": ("istio", NEW),
    "sidecar-only": ("sidecar-only", NEW),
}

_BEGIN, _END = "<!-- the values, from values.yaml: make chart -->\n", "<!-- until here -->\n"
_DOC = re.compile(r" *# -- (.*)")


class ChartError(Exception):
    """The chart isn't as it should be; says where."""


class Value(msgspec.Struct, frozen=True):
    """One documented value: its path, its default, what it means."""

    path: str
    default: str
    meaning: str


def values(text: str) -> list[Value]:
    """Find every value of values.yaml, in order; one without a word about it is an error."""
    lines = text.splitlines()
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode):
        raise ChartError("values.yaml is no mapping")
    return list(_documented(root, (), lines))


def _documented(node: yaml.MappingNode, above: tuple[str, ...], lines: list[str]) -> Iterator[Value]:
    for key, value in node.value:
        path = (*above, key.value)
        doc = _DOC.fullmatch(lines[key.start_mark.line - 1])
        if doc:
            yield Value(".".join(path), _shown(value), doc[1])
        elif isinstance(value, yaml.MappingNode) and value.value:
            yield from _documented(value, path, lines)
        else:
            raise ChartError(f"values.yaml: {'.'.join(path)} has no `# --` comment on the line above it")


def _shown(node: yaml.Node) -> str:
    """Write a default on one line, as JSON."""
    loader = yaml.SafeLoader("")
    try:
        return msgspec.json.format(msgspec.json.encode(loader.construct_object(node, deep=True)), indent=-1).decode()
    finally:
        loader.dispose()


def readme(text: str, found: list[Value]) -> str:
    """Put the table of values in its place."""
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        raise ChartError("README.md: the marks around the table of values are missing")
    rows = (f"| `{value.path}` | `{_cell(value.default)}` | {_cell(value.meaning)} |\n" for value in found)
    return f"{before}{begin}| value | default | meaning |\n| --- | --- | --- |\n{''.join(rows)}{end}{after}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def render(name: str, major: int, version: str | None = None) -> str:
    """Render one of RENDERS, for another cluster if wanted; helm 3 and 4 differ in empty lines, which are left out."""
    file, usual = RENDERS[name]
    arguments = ("--namespace", "zurelay", "--values", str(CHART / "ci" / f"{file}-values.yaml"))
    done = helm.run(major, "template", "zurelay", str(CHART), *arguments, "--kube-version", version or usual)
    if done.returncode:
        raise ChartError(f"{name}: {done.stderr}")
    return "".join(f"{line}\n" for line in done.stdout.splitlines() if line.strip())


def watching() -> dict[str, str]:
    """Give the dashboard and the alerts as the chart has them: helm reads no file outside of it."""
    dashboard = msgspec.json.format((GRAFANA / "dashboard.json").read_bytes(), indent=-1).decode()
    return {"dashboard.json": f"{dashboard}\n", "alerts.yaml": (GRAFANA / "alerts.yaml").read_text()}


def main() -> None:
    """Write them all."""
    for name, content in watching().items():
        (CHART / "files" / name).write_text(content)
    text = (CHART / "README.md").read_text()
    (CHART / "README.md").write_text(readme(text, values((CHART / "values.yaml").read_text())))
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for name in RENDERS:
        (GOLDEN / f"{name}.yaml").write_text(render(name, helm.MAJORS[-1]))


if __name__ == "__main__":
    main()
