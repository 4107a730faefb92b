"""What the real APIs would refuse in a request, so that a gateway's mistakes show. Unknown fields pass."""

from __future__ import annotations

from collections.abc import Mapping

from zurelay.simulate import anthropic, reading
from zurelay.simulate.nouns import LEVELS, Json, Refusal

_LEAST_BUDGET = 1024  # thinking tokens, by Anthropic's documentation
# The fields that a gateway may wrongly let through: its own, and those of the other format.
_FOREIGN_TO_OPENAI = ("models", "output_config", "stop_sequences")
_FOREIGN_TO_ANTHROPIC = (
    *("models", "reasoning_effort", "max_completion_tokens", "response_format"),
    *("stream_options", "stop", "n", "parallel_tool_calls"),
)
_EFFORTS = LEVELS[2:]


def openai(body: Mapping[str, Json]) -> Refusal | None:
    """Find what the OpenAI API would refuse."""
    if not isinstance(body.get("model"), str) or not body["model"]:
        return Refusal(400, "you must provide a model parameter")
    if foreign := [field for field in _FOREIGN_TO_OPENAI if field in body]:
        return Refusal(400, f"Unrecognized request argument supplied: {foreign[0]}", param=foreign[0])
    messages = body.get("messages")
    if messages is None:
        return Refusal(400, "Missing required parameter: 'messages'.", "missing_required_parameter", "messages")
    if not isinstance(messages, list) or len(reading.objects(messages)) != len(messages):
        return Refusal(400, "Invalid type for 'messages': expected an array of objects.", "invalid_type", "messages")
    if not messages:
        return Refusal(400, "Invalid 'messages': empty array. Expected at least 1.", "empty_array", "messages")
    effort = body.get("reasoning_effort")
    if effort is not None and effort not in LEVELS:
        listed = ", ".join(f"'{level}'" for level in LEVELS)
        message = f"Invalid value: {effort!r}. Supported values are: {listed}."
        return Refusal(400, message, "invalid_value", "reasoning_effort")
    return _unpaired(messages)


def _unpaired(messages: list[Mapping[str, Json]]) -> Refusal | None:
    """Find a tool call without its result, or a result without its call."""
    due: set[str] = set()
    for place, message in enumerate(messages):
        if message.get("role") == "tool":
            if reading.clean(message.get("tool_call_id")) not in due:
                said = "messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
                return Refusal(400, f"Invalid parameter: {said}", param=f"messages.[{place}].role")
            due.discard(message["tool_call_id"])
            continue
        if due:
            break
        due = {reading.clean(call.get("id")) for call in reading.objects(message.get("tool_calls"))}
    if due:
        said = "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
        return Refusal(400, f"{said} 'tool_call_id'. Without response: {', '.join(sorted(due))}", param="messages")
    return None


def messages(body: Mapping[str, Json], version: str | None, *, counting: bool = False) -> Refusal | None:
    """Find what the Anthropic API would refuse; counting tokens needs no max_tokens."""
    if version is None:
        return Refusal(400, "anthropic-version: header is required")
    needed = ("model", "messages") if counting else ("model", "messages", "max_tokens")
    for field in needed:
        if body.get(field) is None:
            return Refusal(400, f"{field}: Field required")
    if foreign := [field for field in _FOREIGN_TO_ANTHROPIC if field in body]:
        return Refusal(400, f"{foreign[0]}: Extra inputs are not permitted")
    limit = reading.whole_number(body.get("max_tokens"))
    if not counting and (limit is None or limit < 1):
        return Refusal(400, "max_tokens: Input should be a valid integer greater than or equal to 1")
    said = reading.objects(body["messages"])
    if not said or not isinstance(body["messages"], list) or len(said) != len(body["messages"]):
        return Refusal(400, "messages: at least one message is required, and each must be an object")
    return _thinking(body, limit) or next(filter(None, map(_message, range(len(said)), said)), None) or _results(said)


def _thinking(body: Mapping[str, Json], limit: int | None) -> Refusal | None:
    effort = reading.member(body, "output_config", "effort")
    if effort is not None and effort not in _EFFORTS:
        listed = ", ".join(f"'{level}'" for level in _EFFORTS)
        return Refusal(400, f"output_config.effort: Input should be one of {listed}")
    if reading.member(body, "thinking", "type") not in ("enabled", "adaptive"):
        return None
    if reading.member(body, "thinking", "type") == "enabled":
        budget = reading.whole_number(reading.member(body, "thinking", "budget_tokens")) or 0
        if budget < _LEAST_BUDGET:
            return Refusal(400, f"thinking.budget_tokens: Input should be greater than or equal to {_LEAST_BUDGET}")
        if limit is not None and budget >= limit:
            return Refusal(400, "`max_tokens` must be greater than `thinking.budget_tokens`.")
    if body.get("temperature") not in (None, 1):
        return Refusal(400, "`temperature` may only be set to 1 when thinking is enabled.")
    if reading.member(body, "tool_choice", "type") in ("any", "tool"):
        return Refusal(400, "Thinking may not be enabled when tool_choice forces tool use.")
    return None


def _message(place: int, message: Mapping[str, Json]) -> Refusal | None:
    if message.get("role") not in ("user", "assistant"):
        return Refusal(400, f"messages.{place}.role: Input should be 'user' or 'assistant'")
    for number, block in enumerate(reading.objects(message.get("content"))):
        where = f"messages.{place}.content.{number}"
        if block.get("type") == "text" and not block.get("text"):
            return Refusal(400, f"{where}: text content blocks must be non-empty")
        if block.get("type") == "thinking" and not anthropic.signed(block):
            return Refusal(400, f"{where}: Invalid `signature` in `thinking` block")
    return None


def _results(said: list[Mapping[str, Json]]) -> Refusal | None:
    """Find a tool_use without its tool_result in the next message, or the other way round."""
    due: set[str] = set()
    for place, message in enumerate([*said, {}]):
        blocks = reading.objects(message.get("content"))
        given = {reading.clean(one.get("tool_use_id")) for one in blocks if one.get("type") == "tool_result"}
        if due - given and message:
            missing = ", ".join(sorted(due - given))
            said_why = "`tool_use` ids were found without `tool_result` blocks immediately after"
            return Refusal(400, f"messages.{place - 1}: {said_why}: {missing}")
        if given - due:
            unknown = ", ".join(sorted(given - due))
            return Refusal(400, f"messages.{place}: unexpected `tool_use_id` found in `tool_result` blocks: {unknown}")
        due = {reading.clean(one.get("id")) for one in blocks if one.get("type") == "tool_use"}
    return None
