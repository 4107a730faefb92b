from types import ModuleType

import pytest

from zurelay.model import Effort
from zurelay.simulate import anthropic, openai
from zurelay.simulate.nouns import LEVELS, Dialect


@pytest.mark.parametrize("format", [openai, anthropic])
def test_a_format_offers_all_of_a_dialect(format: ModuleType) -> None:
    wanted = [name for name in vars(Dialect) if not name.startswith("_")]
    missing = [name for name in wanted if not hasattr(format, name)]
    assert (missing, len(wanted)) == ([], 6)


def test_the_levels_are_those_of_the_ladder() -> None:
    assert tuple(level.name for level in Effort) == LEVELS
