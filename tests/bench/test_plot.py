from __future__ import annotations

from xml.etree import ElementTree as ET

from bench import figures, plot

SVG = "{http://www.w3.org/2000/svg}"
MEDIAN = figures.Quantity(title=figures.WHOLE, name="median, 1 connection", unit="ms")


def drawn(found: figures.Figures) -> ET.Element:
    return ET.fromstring(plot.drawn(found.all()))


def texts(picture: ET.Element) -> list[str]:
    return ["".join(one.itertext()) for one in picture.iter(f"{SVG}text")]


def test_a_bar_is_as_long_as_its_value_and_says_it() -> None:
    found = figures.Figures()
    found.add(MEDIAN, figures.ZURELAY, 1.5)
    found.add(MEDIAN, figures.LITELLM, 6)
    picture = drawn(found)
    first, second = (float(bar.attrib["width"]) for bar in list(picture.iter(f"{SVG}rect"))[1:])
    assert abs(first * 4 - second) <= 4
    assert {"1.50 ms", "6.00 ms", figures.ZURELAY, figures.LITELLM} <= set(texts(picture))


def test_the_memory_of_a_target_is_that_of_all_its_processes() -> None:
    found = figures.Figures()
    for role, size in (("sidecar", 80), ("Envoy", 120)):
        name = f"{role}, 1,000 streams open"
        found.add(figures.Quantity(title=figures.MEMORY, name=name, unit="MiB"), figures.ZURELAY, size)
    assert "200 MiB" in texts(drawn(found))


def test_what_was_not_measured_has_no_panel() -> None:
    found = figures.Figures()
    found.add(MEDIAN, figures.ZURELAY, 1.5)
    assert 1 == sum("is better" in text for text in texts(drawn(found)))
    assert [] == texts(drawn(figures.Figures()))


def test_a_figure_of_zero_is_still_drawn() -> None:
    found = figures.Figures()
    found.add(MEDIAN, figures.ZURELAY, 0)
    assert "0 ms" in texts(drawn(found))
