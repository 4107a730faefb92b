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
    lists: dict[Category, tuple[Model, ...]],
    category: Category,
    request: ChatRequest,
    asked: Effort | None,
    unsayable: Callable[[Model], InvalidRequest | None] = lambda _: None,
) -> Selection:
    """Choose among Auto's models; a 400 says why none can take the request.

    `unsayable` gives the refusal of a model whose routes' format has no place for what the request holds.
    """
    every = _once(model for listed in lists.values() for model in listed)
    thinkers = _thinkers(every, asked)
    left_out: dict[str, LeftOut] = {}
    refused: list[InvalidRequest] = []

    def can(model: Model) -> bool:
        why = fit.unfit(model, request)
        if why is None and model not in thinkers:
            why = "it has no reasoning level"
        if why is None and (refusal := unsayable(model)) is not None:
            refused.append(refusal)
            why = refusal.message
        if why is not None:
            left_out[model.id] = LeftOut(model.id, why)
        return why is None

    models = _in_order(lists, category, can)
    if not models:
        raise refused[0] if refused else _none_can(every, thinkers, request)
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


def _thinkers(every: tuple[Model, ...], asked: Effort | None) -> tuple[Model, ...]:
    """The models that will do for the level asked: those that can think, if it says to and any can."""
    if asked is None or asked is Effort.none:
        return every
    return tuple(model for model in every if _can_think(model)) or every


def _can_think(model: Model) -> bool:
    return model.reasoning is not None and any(level is not Effort.none for level in model.reasoning.levels)


def _none_can(every: tuple[Model, ...], thinkers: tuple[Model, ...], request: ChatRequest) -> InvalidRequest:
    """The refusal, with what would help: to leave the level out too, where a model without levels could."""
    refusal = _none_of(thinkers, request, "None of the models that zurelay-auto may use")
    if all(fit.unfit(model, request) is not None for model in every):
        return refusal
    refusal = _none_of(thinkers, request, "None of the models with reasoning levels that zurelay-auto may use")
    return InvalidRequest(
        f"{refusal.message} Without {request.effort_param}, a model that has no reasoning levels can take it.",
        code=refusal.code,
        param=refusal.param,
    )


def _none_of(models: tuple[Model, ...], request: ChatRequest, whom: str) -> InvalidRequest:
    readers = [model for model in models if fit.unread(model, request) is None]
    if not readers:
        return _none_reads(request, whom)
    able = [model for model in readers if fit.lacking(model, request) is None]
    if not able:
        features = ", ".join(sorted(feature.value for feature in request.features))
        return InvalidRequest(
            f"{whom} has all that this request uses: {features}. Name a model that has it.",
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


def _none_reads(request: ChatRequest, whom: str) -> InvalidRequest:
    media = sorted(kind.value for kind in request.media)
    if len(media) == 1:
        said = f"{whom} reads {media[0]}. Leave it out, or name a model that reads it."
    else:
        said = (
            f"{whom} reads all of this together: {', '.join(media)}. "
            "Send them in separate requests, or name a model that reads them."
        )
    return InvalidRequest(said, code="unsupported_content", param="messages")
