import msgspec
from anthropic.types import MessageTokensCount, ModelInfo
from openai.types import Model

from zurelay.simulate import listing


def test_models_have_openais_shape() -> None:
    body = msgspec.json.decode(listing.models(("a", "b"), anthropic=False))
    assert [Model.model_validate(one).id for one in body["data"]] == ["a", "b"]


def test_models_have_anthropics_shape() -> None:
    body = msgspec.json.decode(listing.models(("a", "b"), anthropic=True))
    found = [ModelInfo.model_validate(one).id for one in body["data"]]
    assert (found, body["has_more"], body["first_id"], body["last_id"]) == (["a", "b"], False, "a", "b")


def test_no_model_is_an_empty_list() -> None:
    body = msgspec.json.decode(listing.models((), anthropic=True))
    assert body == {"data": [], "has_more": False, "first_id": None, "last_id": None}


def test_one_model_has_its_formats_shape() -> None:
    found = (
        Model.model_validate_json(listing.model("a", anthropic=False)).id,
        ModelInfo.model_validate_json(listing.model("a", anthropic=True)).id,
    )
    assert found == ("a", "a")


def test_tokens_are_counted_in_anthropics_shape() -> None:
    assert MessageTokensCount.model_validate_json(listing.tokens(7)).input_tokens == 7
