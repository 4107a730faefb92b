"""Models of both formats behind one gateway, and what tests ask them."""

from __future__ import annotations

from typing import Any

from anthropic.types import MessageParam, ToolParam

HELLO: list[MessageParam] = [{"role": "user", "content": "Say hello"}]
WEATHER: ToolParam = {
    "name": "get_weather",
    "description": "Current weather for a city",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
LEVELS = ["low", "medium", "high", "xhigh", "max"]


def claude_catalog(port: int) -> dict[str, Any]:
    """Models of both formats behind one simulator; `dual` answers messages by a provider of OpenAI's format."""
    base = f"http://127.0.0.1:{port}"
    return {
        "providers": {
            "a1": {"base_url": f"{base}/a1/v1", "format": "anthropic"},
            "a2": {"base_url": f"{base}/a2/v1", "format": "anthropic"},
            "p1": {"base_url": f"{base}/p1/v1", "format": "openai"},
        },
        "models": {
            "claude": {
                "aliases": ["opus"],
                "routes": [{"provider": "a1", "model": "c1"}, {"provider": "a2", "model": "c2"}],
                "context_window": 200_000,
                "max_output": 64_000,
                "inputs": ["text", "image", "pdf"],
                "reasoning": {"levels": LEVELS, "default": "high"},
            },
            "spare": {
                "routes": [{"provider": "a2", "model": "s1"}],
                "context_window": 200_000,
                "reasoning": {"levels": ["none", "low"]},
            },
            "guarded": {
                "routes": [{"provider": "a1", "model": "g1"}],
                "context_window": 200_000,
                "fallbacks": ["spare"],
            },
            "dual": {
                "routes": [{"provider": "p1", "model": "d1"}],
                "context_window": 200_000,
                "messages": True,
                "reasoning": {"levels": ["low", "high"]},
            },
            "chatty": {"routes": [{"provider": "p1", "model": "m1"}], "context_window": 200_000},
        },
        "streaming": {"open_after": "3s", "keepalive": "1s", "messages_keepalive": "1s"},
    }
