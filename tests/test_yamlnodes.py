import hypothesis
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from zurelay import yamlnodes
from zurelay.problems import Problem
from zurelay.yamlnodes import Items, Node, Scalar, Table


def load(text: str) -> tuple[Node | None, list[str]]:
    problems: list[Problem] = []
    node = yamlnodes.load(text, problems)
    return node, [str(problem) for problem in problems]


def plain(node: Node | None) -> object:
    """The tree without lines."""
    if isinstance(node, Table):
        return {key: plain(value) for key, (_, value) in node.entries.items()}
    if isinstance(node, Items):
        return [plain(item) for item in node.items]
    return node and node.text


TREES = {
    "block": ("a: 1\nb:\n- x\n- {c: d}\n", {"a": "1", "b": ["x", {"c": "d"}]}),
    "JSON": ('{"a":1,"b":[true,null]}', {"a": "1", "b": ["true", "null"]}),
    "a byte order mark": ("\ufeffa: 1", {"a": "1"}),
    "CRLF": ("a: 1\r\nb: 2\r\n", {"a": "1", "b": "2"}),
    "an alias": ("a: &x {b: c}\nd: *x\ne: [*x]", {"a": {"b": "c"}, "d": {"b": "c"}, "e": [{"b": "c"}]}),
    "an alias of text": ("a: &x hello\nb: *x\n*x : c", {"a": "hello", "b": "hello", "hello": "c"}),
    "an anchor used again is the last one": ("a: &x 1\nb: &x 2\nc: *x", {"a": "1", "b": "2", "c": "2"}),
    "a merge": ("x: &x {a: 1, b: 2}\ny: {<<: *x, b: 3}", {"x": {"a": "1", "b": "2"}, "y": {"b": "3", "a": "1"}}),
    "a merge of several": (
        "x: &x {a: 1}\ny: &y {a: 2, b: 2}\nz: {<<: [*x, *y]}",
        {"x": {"a": "1"}, "y": {"a": "2", "b": "2"}, "z": {"a": "1", "b": "2"}},
    ),
    "a merge of a merge": (
        "x: &x {a: 1}\ny: &y {<<: *x, b: 2}\nz: {<<: *y}",
        {"x": {"a": "1"}, "y": {"b": "2", "a": "1"}, "z": {"b": "2", "a": "1"}},
    ),
    "the tag of text": ("a: !!str 5", {"a": "5"}),
    "nothing": ("", ""),
    "a comment only": ("# nothing\n", ""),
    "an empty key": ("'': x", {"": "x"}),
}


@pytest.mark.parametrize(("text", "tree"), TREES.values(), ids=TREES)
def test_a_document_becomes_a_tree(text: str, tree: object) -> None:
    node, problems = load(text)

    assert problems == []
    assert tree == plain(node)


def test_a_tree_knows_its_lines() -> None:
    node, _ = load("\na: 1\nb:\n\n  - x\n  - {c:\n      d}\n")

    assert node == Table(
        2,
        {
            "a": (2, Scalar(2, "1")),
            "b": (3, Items(5, [Scalar(5, "x"), Table(6, {"c": (6, Scalar(7, "d"))}, 3)], 5)),
        },
        9,
    )


BAD = {
    "a key twice": ("a: 1\nb: 2\na: 3", ["line 3: a: said twice; first at line 1"]),
    "a key twice, deep": ("x:\n- y: {a: 1, a: 2}", ["line 2: x[0].y.a: said twice; first at line 2"]),
    "a tag on a list": ("a: !x []", ["line 1: a: the tag !x isn't used here; leave it out"]),
    "two keys twice": (
        "a: 1\na: 2\nb: 1\nb: 2",
        ["line 2: a: said twice; first at line 1", "line 4: b: said twice; first at line 3"],
    ),
    "a tag": (
        "a: !!python/object:os.system x",
        ["line 1: a: the tag tag:yaml.org,2002:python/object:os.system isn't used here; leave it out"],
    ),
}


@pytest.mark.parametrize(("text", "problems"), BAD.values(), ids=BAD)
def test_what_is_wrong_but_can_be_read_on_is_noted(text: str, problems: list[str]) -> None:
    node, found = load(text)

    assert node is not None
    assert problems == found


UNREADABLE = {
    "a mapping in a value": ("a: 1\nb: c: d", "line 2: not valid YAML: mapping values are not allowed in this context"),
    "an open quote": (
        "a: 'x\n\n",
        "line 3: not valid YAML: while scanning a quoted scalar, found unexpected end of stream",
    ),
    "a tab": (
        "a:\n\t- b",
        "line 2: not valid YAML: while scanning for the next token, found character that cannot start any token",
    ),
    "a control character": ("é: 1\nb: \x07", "line 2: not valid YAML: control characters are not allowed"),
    "half a character": ("a: 1\nb: \udc00", "line 2: not UTF-8 text: it holds half of a surrogate pair"),
    "two documents": ("a: 1\n---\nb: 2", "line 2: a second document begins here; the file holds one"),
    "an unknown alias": ("a: 1\nb: *x", "line 2: b: no anchor &x stands before this alias"),
    "an anchor in itself": ("a: &x [1, *x]", "line 1: a[1]: the anchor &x holds itself"),
    "a merge of text": ("a: {<<: b}", "line 1: a.<<: expected a mapping to merge, not text"),
    "a list as key": ("? [a]\n: b", "line 1: a key is a list; keys are plain text"),
    "a mapping as key, by alias": ("a: &x {}\n*x : b", "line 2: a key is a mapping; keys are plain text"),
    "33 lists deep": ("[" * 33, "line 1: nested over 32 levels deep"),
    "100,000 lists deep": ("- " * 100_000, "line 1: nested over 32 levels deep"),
    "ten to the ninth values": (
        "\n".join(["a0: &a0 [x]", *(f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 10)}]" for n in range(9))]),
        "line 7: aliases bring in over 1,000,000 values; write the file with fewer",
    ),
}


@pytest.mark.parametrize(("text", "problem"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_is_no_document_says_why_and_where(text: str, problem: str) -> None:
    node, problems = load(text)

    assert node is None
    assert [problem] == problems


@pytest.mark.parametrize(
    ("text", "kind"),
    {
        "null": "nothing",
        "~": "nothing",
        "''": "text",
        "no": "text",
        "'true'": "text",
        "true": "true or false",
        "False": "true or false",
        "1_000": "a number",
        "-1.5e3": "a number",
        "'1'": "text",
        "1.2.3": "text",
        "0x10": "text",
        ".inf": "text",
        "2027-01-01": "text",
        "[]": "a list",
        "{}": "a mapping",
    }.items(),
)
def test_a_value_has_the_kind_that_yaml_1_2_gives_it(text: str, kind: str) -> None:
    node, _ = load(text)

    assert node is not None
    assert kind == yamlnodes.kind(node)


KEYS = st.text("ab:#-'\"{}[]é\n ", min_size=1, max_size=5)
VALUES = st.recursive(
    st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@hypothesis.settings(deadline=None)
@given(VALUES)
def test_what_a_yaml_writer_wrote_is_read_back(value: object) -> None:
    written = yaml.safe_dump(value, default_style='"', allow_unicode=True)

    node, problems = load(written)

    assert problems == []
    assert value == plain(node)


@hypothesis.settings(deadline=None)
@given(st.text() | st.text("[]{}&*x:,- \n'\"|>!%?<\t#"))
def test_any_text_is_a_tree_or_has_a_problem(text: str) -> None:
    node, problems = load(text)

    assert node is not None or problems
