"""How well Zurelay Auto classifies the examples of tests/fixtures/auto: by language, by kind, and what for what.

    python tools/evaluate_auto.py [--held-out] [--wrong] [--benchmarks DIR]

--held-out takes the requests that nothing was learned from. --wrong lists the misses. --benchmarks also measures APGR
on DIR/{mmlu,gsm8k,mt_bench}.csv (prompt, weak, strong), as they are and without the format of multiple choice;
the tables were learned from such files, so the honest figures are those of `tools/learn_auto.py --check`.
"""

from __future__ import annotations

import argparse
import csv
import json
import pathlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from zurelay.auto import classify, content
from zurelay.model import Auto

FIXTURES = pathlib.Path(__file__).parent.parent / "tests" / "fixtures" / "auto"
LEVELS = ("simple", "standard", "complex")
SETS = ("mmlu", "gsm8k", "mt_bench")
_PLACE = re.compile(r"\{\{([a-z0-9A-Z-]+)\}\}")


def examples(name: str = "examples") -> list[dict[str, Any]]:
    """The labelled requests of a file; {{name}} in them stands for a text of materials.json."""
    texts = json.loads((FIXTURES / "materials.json").read_text(encoding="utf-8"))
    written = {name: json.dumps(text, ensure_ascii=False)[1:-1] for name, text in texts.items()}

    def filled(line: str) -> str:
        return _PLACE.sub(lambda found: written[found[1]], line)

    with (FIXTURES / f"{name}.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(filled(line)) for line in lines]


def category(body: dict[str, Any]) -> classify.Verdict:
    """The verdict with the default thresholds."""
    return classify.classify(content.read(body), Auto().thresholds)


def is_right(row: dict[str, Any], found: str) -> bool:
    """Whether a category is the expected one or one that the example allows."""
    return found == row["expect"] or found in row.get("also", ())


def table(title: str, rows: Iterable[tuple[str, bool]]) -> str:
    """Markdown: share of right answers by a column."""
    seen: defaultdict[str, list[bool]] = defaultdict(list)
    for name, right in rows:
        seen[name].append(right)
    ranked = sorted(seen.items(), key=lambda item: (-len(item[1]), item[0]))
    lines = [f"| {name} | {len(found)} | {sum(found) / len(found):.0%} |" for name, found in ranked]
    return "\n".join([f"| {title} | examples | right |", "| --- | --- | --- |", *lines])


def confusion(pairs: Iterable[tuple[str, str]]) -> str:
    """Markdown: expected down, found across."""
    seen = Counter(pairs)
    lines = [f"| {wanted} | " + " | ".join(str(seen[wanted, found]) for found in LEVELS) + " |" for wanted in LEVELS]
    return "\n".join(["| expected | simple | standard | complex |", "| --- | --- | --- | --- |", *lines])


def apgr(rows: list[tuple[str, float, float]], scores: list[float]) -> float:
    """Average performance gap recovered by sending the hardest k% to the strong model, over all k; 0.5 is chance."""
    order = sorted(range(len(rows)), key=lambda at: -scores[at])
    whole = sum(strong - weak for _, weak, strong in rows)
    reached = area = 0.0
    for at in order:
        gain = (rows[at][2] - rows[at][1]) / whole
        area += (reached + gain / 2) / len(rows)
        reached += gain
    return area


def stripped(prompt: str) -> str:
    """A multiple-choice prompt without its format: the letters before the answers and the word Answer."""
    return re.sub(r"(?m)^[A-D]\. ", "", re.sub(r"\n?Answer:\s*$", "", prompt))


def benchmark(folder: pathlib.Path, name: str) -> list[tuple[str, float, float]]:
    """One set's prompts with the measured quality of a weak and a strong model; of two turns the first."""
    with (folder / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        rows = [(row["prompt"], float(row["weak"]), float(row["strong"])) for row in csv.DictReader(file)]
    if name == "mt_bench":
        return [(json.loads(prompt)[0], weak, strong) for prompt, weak, strong in rows]
    return rows


def one_turn(text: str) -> dict[str, Any]:
    """A request of one message."""
    return {"messages": [{"role": "user", "content": text}]}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--wrong", action="store_true")
    parser.add_argument("--benchmarks", type=pathlib.Path)
    args = parser.parse_args()
    rows = examples("held-out" if args.held_out else "examples")
    found = [category(row["body"]).category.value for row in rows]
    right = [is_right(row, each) for row, each in zip(rows, found, strict=True)]
    print(f"{len(rows)} examples, {sum(right) / len(rows):.1%} right\n")
    print(confusion((row["expect"], each) for row, each in zip(rows, found, strict=True)), "\n")
    print(table("language", ((row["lang"], ok) for row, ok in zip(rows, right, strict=True))), "\n")
    print(table("kind", ((row["kind"], ok) for row, ok in zip(rows, right, strict=True))), "\n")
    for row, each, ok in zip(rows, found, right, strict=True):
        if args.wrong and not ok:
            print(row["id"], row["expect"], "not", each, category(row["body"]).reasons)
    for name in SETS if args.benchmarks else ():
        prompts = benchmark(args.benchmarks, name)
        plain = [category(one_turn(prompt)).score for prompt, _, _ in prompts]
        bare = [category(one_turn(stripped(prompt))).score for prompt, _, _ in prompts]
        print(f"{name}: APGR {apgr(prompts, plain):.3f}, without the format {apgr(prompts, bare):.3f}")


if __name__ == "__main__":
    main()
