"""A request's category: the model's score of its last turn, and rules on top for what is certain (SPEC 6).

Rules only raise a score, to the lower bound of the category that they are sure of: the floor. A conversation keeps
the category of the work in it, until a farewell or a small question about something else; a long tool loop is never
simple. So more work in a request never lowers its category.
"""

from __future__ import annotations

import itertools

import msgspec

from zurelay.auto import features, lexicon, score
from zurelay.auto.content import Content, Role, Turn
from zurelay.model import Category

# Earlier turns of the user that are looked at for work in progress: the latest ones, those apart that are as short as
# "ok, continue" (in letters of a Latin text), of which there may be any number after the work.
TURNS, ASSENT = 4, 40
# Tool results after which a loop is at least standard, and complex.
LOOP_STANDARD, LOOP_COMPLEX = 3, 6
# Text that only a model with a long reach reads well, in characters.
LONG = 60_000
# How much of each end of how many earlier turns is searched for the words of a new question.
GLANCE, GLANCED = 2000, 40
# How many words of writing name the deed and the text: "write a letter".
WRITING = 2
# A farewell and a small question are no longer than this, in characters.
FAREWELL, QUESTION = 80, 160

_ORDER = (Category.SIMPLE, Category.STANDARD, Category.COMPLEX)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What Auto takes a request to be. `floor` is what rules are sure of at least, `raised` those that raised it."""

    score: float
    category: Category
    features: dict[str, float]
    raised: tuple[str, ...]
    floor: Category | None

    @property
    def reasons(self) -> tuple[str, ...]:
        """The rules that raised the score, else the features that moved it. Only told on demand."""
        return self.raised or score.reasons(self.features)


def classify(content: Content, thresholds: tuple[float, float]) -> Verdict:
    """Score the last user turn, raise it to the floor, and part the scores by the thresholds."""
    asked = [turn for turn in content.turns if turn.role is Role.USER] or [Turn(role=Role.USER, text="")]
    last = features.of(content, asked[-1])
    own = round(score.of(last), 4)
    floor, why = _floor(content, asked, last, thresholds)
    least = (0.0, *thresholds)[_ORDER.index(floor)] if floor else 0.0
    final = min(1.0, max(own, least))
    return Verdict(
        score=final,
        category=category(final, thresholds),
        features=last,
        raised=why if final > own else (),
        floor=floor,
    )


def category(value: float, thresholds: tuple[float, float]) -> Category:
    """The category of a score; a score on a threshold belongs above it."""
    low, high = thresholds
    if value >= high:
        return Category.COMPLEX
    return Category.STANDARD if value >= low else Category.SIMPLE


def _floor(
    content: Content, asked: list[Turn], last: dict[str, float], thresholds: tuple[float, float]
) -> tuple[Category | None, tuple[str, ...]]:
    """The highest category that a rule is sure of, and that rule."""
    sure = [(Category.STANDARD, "a text to write")] if _writes(last) else []
    if len(content.turns) == 1 and len(content.turns[0].text) <= LONG and not content.turns[0].results and not sure:
        return None, ()
    if sum(len(turn.text) for turn in content.turns) > LONG:
        sure.append((Category.STANDARD, "long text"))
    leaves = _leaves(content, asked, last)
    results = _results(content, since_last_ask=leaves)
    if results >= LOOP_STANDARD:
        rank = Category.COMPLEX if results >= LOOP_COMPLEX else Category.STANDARD
        sure.append((rank, f"tool loop of {results}"))
    if not leaves and len(asked) > 1:
        sure.append((_alone(last, thresholds), "work in progress"))
        for turn in _telling(asked[:-1]):
            if sure[-1][0] is Category.COMPLEX:
                break
            sure.append((_alone(features.of(content, turn), thresholds), "work in progress"))
    if not sure:
        return None, ()
    floor = max((rank for rank, _ in sure), key=_ORDER.index)
    return floor, tuple(dict.fromkeys(why for rank, why in sure if rank is floor))


def _alone(found: dict[str, float], thresholds: tuple[float, float]) -> Category:
    """The category of one turn by itself."""
    own = category(score.of(found), thresholds)
    return Category.STANDARD if own is Category.SIMPLE and _writes(found) else own


def _writes(found: dict[str, float]) -> bool:
    """Whether a turn leads with writing and names what (a letter, a poem), with no small chore nor material beside it.

    However short: of the labelled examples of which this is so, 98 in 100 are standard at least.
    """
    is_bare = not found["light"] and found["material"] < 1
    return bool(is_bare and found["write_leads"] and found["write"] >= WRITING)


def _telling(earlier: list[Turn]) -> list[Turn]:
    """The turns that tell what the work is, the latest first."""
    latest = earlier[: -TURNS - 1 : -1]
    room = sum(_is_short(turn.text) for turn in latest)
    older = (turn for turn in earlier[-TURNS - 1 :: -1] if not _is_short(turn.text))
    return [*latest, *itertools.islice(older, room)]


def _is_short(text: str) -> bool:
    return len(text) <= ASSENT and len(text) + 1.5 * lexicon.dense(lexicon.scripts(text)) <= ASSENT


def _results(content: Content, *, since_last_ask: bool) -> int:
    """Tool results in the request, or since the user's last word."""
    count = 0
    for turn in reversed(content.turns):
        if since_last_ask and turn.role is Role.USER:
            break
        count += turn.results
    return count


def _leaves(content: Content, asked: list[Turn], last: dict[str, float]) -> bool:
    """Whether the last turn leaves the work behind: a farewell, or a small question that shares no word with it."""
    if len(asked) <= 1 or content.turns[-1] is not asked[-1] or asked[-1].media:
        return False
    if content.turns[-2].role is Role.USER:  # nobody has answered yet: there is no work to leave
        return False
    text = asked[-1].text
    if len(text) > QUESTION or last["deep"] or last["domain"] or last["go_on"]:
        return False
    if last["thanks"] and not last["questions"] and not last["middle"]:
        return len(text) <= FAREWELL and not last["more"]
    if not (last["lookup"] and (last["asks_last"] or last["lookup_leads"])):
        return False
    told = "\n".join(_glance(turn.text) for turn in content.turns[-1 - GLANCED : -1]).lower()
    return not any(word in told for word in lexicon.telling(text.lower()))


def _glance(text: str) -> str:
    return text if len(text) <= 2 * GLANCE else f"{text[:GLANCE]} {text[-GLANCE:]}"
