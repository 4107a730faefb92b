from __future__ import annotations

import pytest

from bench import document, figures, running

BEGIN = "<!-- figures of `python -m bench --document`: written by the command -->"
END = "<!-- end of the figures -->"


def measured() -> list[figures.Figure]:
    quantity = figures.Quantity(title=figures.WHOLE, name="median", unit="ms")
    return [figures.Figure(quantity=quantity, target=figures.ZURELAY, rounds=[1.5])]


def test_a_run_writes_between_the_marks_and_nowhere_else() -> None:
    once = document.updated(f"# Words\n\n{BEGIN}\nold\n{END}\n\nMore.\n", {"cores": "2"}, measured(), "p.svg")
    assert once.startswith(
        f"# Words\n\n{BEGIN}\n\n- cores: 2\n\n![The figures that count most, as bars](p.svg)\n\n| what"
    )
    assert "| median            | 1.50 ms |\n" in once
    assert "old" not in once
    assert once.endswith(f"|\n\n{END}\n\nMore.\n")


def test_writing_twice_is_writing_once() -> None:
    once = document.updated(f"{BEGIN}\n{END}", {"cores": "2"}, measured(), "p.svg")
    assert once == document.updated(once, {"cores": "2"}, measured(), "p.svg")


@pytest.mark.parametrize("text", ["", BEGIN, END, f"{END}\n{BEGIN}"])
def test_a_document_without_both_marks_is_refused(text: str) -> None:
    with pytest.raises(running.BenchError, match="no place"):
        document.updated(text, {}, measured(), "p.svg")
