import pytest

from zurelay.supervise.polling import until


async def test_it_looks_until_it_is_so() -> None:
    answers = iter([False, False, True])

    async def met() -> bool:
        return next(answers)

    await until(met, 10)

    assert list(answers) == []


async def test_it_gives_up_in_time() -> None:
    async def met() -> bool:
        return False

    with pytest.raises(TimeoutError):
        await until(met, 0.01)
