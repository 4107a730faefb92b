"""What callers of the translators give and get."""

from __future__ import annotations

import pytest

import zurelay.formats
from zurelay.formats import contract


def test_the_package_gives_out_the_contract_and_nothing_else() -> None:
    assert all(getattr(zurelay.formats, name) is getattr(contract, name) for name in zurelay.formats.__all__)


def test_a_target_is_a_named_model_without_limits_unless_said_otherwise() -> None:
    target = contract.Target(model="m")

    assert (target.max_output, target.effort, target.named) == (None, None, True)


@pytest.mark.parametrize("value", [contract.Target(model="m"), contract.Stamp(id="i", created=1, model="m")])
def test_values_can_t_change(value: contract.Target | contract.Stamp) -> None:
    with pytest.raises(AttributeError, match="immutable"):
        value.model = "other"  # type: ignore[misc]  # the point of the test
