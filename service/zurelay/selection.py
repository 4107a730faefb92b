"""Auto's selection: from a category to the models that may answer, in the order they are tried (SPEC 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from zurelay import fit
from zurelay.errors import InvalidRequest
from zurelay.model import Category, Effort, Model
from zurelay.request import ChatRequest

MOST_MODELS = 5  # SPEC 6

_ORDERS = {
    Category.SIMPLE: (Category.SIMPLE, Category.STANDARD, Category.COMPLEX),
    Category.STANDARD: (Category.STANDARD, Category.COMPLEX, Category.SIMPLE),
    Category.COMPLEX: (Category.COMPLEX, Category.STANDARD, Category.SIMPLE),
}
# The last category of a list that has neither above nor below left is tried only if none of the others can.
_LAST_RESORT = {Category.SIMPLE: Category.COMPLEX, Category.COMPLEX: Category.SIMPLE}


class LeftOut(msgspec.Struct, frozen=True):
    """A model that could have answered but may not, and why."""

    model: str
    why: str


class Selection(msgspec.Struct, frozen=True):
    """The models to try, in order, and those that were left out."""

    models: tuple[Model, ...]
    left_out: tuple[LeftOut, ...] = ()


def select(
    lists: dict[Category, tuple[Model, ...]], category: Category, request: ChatRequest, asked: Effort | None
) -> Selection:
    """Choose among Auto's models; a 400 says why none can take the request."""
    every = _once(model for listed in lists.values() for model in listed)
    thinks = asked is not None and asked is not Effort.none and any(_can_think(model) for model in every)
    left_out: dict[str, LeftOut] = {}

    def can(model: Model) -> bool:
        why = fit.unfit(model, request)
        if why is None and thinks and not _can_think(model):
            why = "it has no reasoning level"
        if why is not None:
            left_out[model.id] = LeftOut(model.id, why)
        return why is None

    models = _in_order(lists, category, can)
    if not models:
        raise _none_can(every, request)
    return Selection(models[:MOST_MODELS], tuple(left_out.values()))


def _in_order(
    lists: dict[Category, tuple[Model, ...]], category: Category, can: Callable[[Model], bool]
) -> tuple[Model, ...]:
    last = _LAST_RESORT.get(category)
    first = _once(model for each in _ORDERS[category] if each is not last for model in lists[each])
    models = tuple(model for model in first if can(model))
    if not models and last is not None:
        models = tuple(model for model in _once(lists[last]) if can(model))
    return models


def _once(models: Iterable[Model]) -> tuple[Model, ...]:
    return tuple({model.id: model for model in models}.values())


def _can_think(model: Model) -> bool:
    return model.reasoning is not None and any(level is not Effort.none for level in model.reasoning.levels)


def _none_can(every: tuple[Model, ...], request: ChatRequest) -> InvalidRequest:
    readers = [model for model in every if fit.unread(model, request) is None]
    if not readers:
        media = ", ".join(sorted(kind.value for kind in request.media))
        return InvalidRequest(
            f"None of the models that zurelay-auto may use reads all of this together: {media}. "
            "Send them in separate requests, or name a model that reads them.",
            code="unsupported_content",
            param="messages",
        )
    able = [model for model in readers if fit.lacking(model, request) is None]
    if not able:
        features = ", ".join(sorted(feature.value for feature in request.features))
        return InvalidRequest(
            f"None of the models that zurelay-auto may use has all that this request uses: {features}. "
            "Name a model that has it.",
            code="unsupported_content",
        )
    largest = max(model.context_window for model in able)
    return InvalidRequest(
        f"This request needs about {fit.needed(request)} tokens ({request.tokens} for the prompt and "
        f"{request.max_output or 0} for the answer); the largest window among the models that can take it "
        f"is {largest}. Send a shorter one, or ask for less output.",
        code="context_length_exceeded",
        param="messages",
    )
