"""What processes tell each other comes through whole."""

from __future__ import annotations

from zurelay import news
from zurelay.news import Closed, News, Taken

TOLD = News(
    taken=(
        Taken("3f.1", 1_764_500_000_000_000, "2026-11-30", 5000, 71_500_000_000_000_000, ("key:a", "policy:p anyone")),
    ),
    closed=(Closed("3f.1", 1_764_500_001_000_000, "2026-11-30", 5000, 1300, ("key:a",)),),
    spent=(("key:a", "2026-11", 10**30),),
)


def test_news_comes_back_as_it_was() -> None:
    assert TOLD == news.decode(news.encode(TOLD))
    assert News() == news.decode(news.encode(News()))


def test_news_is_one_line() -> None:
    assert b"\n" not in news.encode(TOLD)


def test_a_reservation_names_its_owner() -> None:
    assert "3f" == news.owner_of(news.reservation_id("3f", 12))
