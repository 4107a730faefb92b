"""A Chat Completions request, written as a Messages request (SPEC 3, 4, 9).

| chat field | at a Messages provider |
| --- | --- |
| messages, tools, tool_choice, parallel_tool_calls, response_format | see `turns_` and `tools_chat_to_messages` |
| max_completion_tokens, else max_tokens | max_tokens; left out: the model's max_output, else DEFAULT_MAX_TOKENS |
| reasoning_effort | Target.effort: adaptive thinking, summarized, and output_config.effort; `none`: thinking disabled |
| temperature | 0 to 2 onto 0 to 1 by cutting off; 1 is the default and left out. Thinking takes no other: unmapped |
| top_p | kept; 1 is left out. Thinking takes 0.95 to 1: others unmapped |
| stop | stop_sequences; blank ones unmapped |
| metadata.user_id, else safety_identifier, else user | metadata.user_id; other metadata unmapped |
| service_tier | auto, priority, scale, fast: auto; default: standard_only; flex unmapped |
| stream | kept |
| n over 1, audio output, functions, function_call, web_search_options | refused of every model |
| seed, logit_bias, logprobs, penalties, store, verbosity other than medium, moderation | unmapped |
| prediction, prompt_cache_*, stream_options | left out: they change no word of the answer |
| any other | passes to a named model, so Messages' own fields (top_k, thinking, ...) can be used |

Unmapped: a 400 that names the field for a model that the client named, dropped for another.
"""

from __future__ import annotations

from typing import Any

import msgspec

from zurelay.errors import InvalidRequest
from zurelay.formats import tools_chat_to_messages as tools
from zurelay.formats import turns_chat_to_messages as turns
from zurelay.formats.blocks import Text
from zurelay.formats.contract import Target
from zurelay.formats.fields import ANY, COUNT, FLAG, NUMBER, OBJECT, TEXT, Fields, Neutral
from zurelay.jsonedit import Document
from zurelay.model import Effort

DEFAULT_MAX_TOKENS = 8192
"""Messages must have max_tokens: this where neither client nor catalog says. All Claude models since 3.5 take it."""

_REFUSED: Neutral = {
    "n": (1,),
    "audio": (),
    "modalities": (["text"],),
    "functions": ([],),
    "function_call": (),
    "web_search_options": (),
}
_UNMAPPED: Neutral = {
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "logit_bias": ({},),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "seed": (),
    "store": (False,),
    "verbosity": ("medium",),
    "moderation": (),
}
_LEFT_OUT = (
    *("model", "models", "reasoning_effort", "stream_options", "prediction"),
    *("prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"),
)
_TIERS = {
    "auto": "auto",
    "priority": "auto",
    "scale": "auto",
    "fast": "auto",
    "default": "standard_only",
    "standard_only": "standard_only",
}
_THINKING_TOP_P = 0.95  # the least that Messages takes beside thinking (its page on thinking)
_HOTTEST = 2.0  # of chat's temperature; Messages' is 1
_STOP = msgspec.json.Decoder(str | list[str])
_THINKING = {"type": "adaptive", "display": "summarized"}
_NO_THINKING = {"type": "disabled"}


def request(body: bytes | Document, target: Target) -> bytes:
    """Translate a chat body for a Messages provider; InvalidRequest says what can't be, and names the field.

    Whoever has parsed the body already gives the document: that is a third of the work.
    """
    fields = Fields(body, named=target.named)
    fields.drop(*_LEFT_OUT)
    fields.refuse_unless(_REFUSED, always=True)
    fields.refuse_unless(_UNMAPPED)
    talk = turns.translate(fields, keep_thinking=target.effort is not Effort.none)
    kit = tools.translate(fields, used=talk.tool_names)
    if kit.instruction:
        talk.system.append(Text(kit.instruction))

    out: dict[str, Any] = {"model": target.model, "max_tokens": _max_tokens(fields, target)}
    if talk.system:
        out["system"] = talk.system
    out |= kit.fields
    thinks = _reasoning(fields, target, out, kit)
    _sampling(fields, out, thinks=thinks)
    _stop(fields, out)
    _metadata(fields, out)
    _service_tier(fields, out)
    stream = fields.take("stream", FLAG)
    if stream is not None:
        out["stream"] = stream
    fields.add_rest(out)
    out["messages"] = talk.turns
    return msgspec.json.encode(out)


def _max_tokens(fields: Fields, target: Target) -> int:
    newer, older = fields.take("max_completion_tokens", COUNT), fields.take("max_tokens", COUNT)
    name = "max_tokens" if newer is None else "max_completion_tokens"
    asked = older if newer is None else newer
    if asked is None:
        return target.max_output or DEFAULT_MAX_TOKENS
    if asked < 1:
        raise InvalidRequest(f"`{name}` is {asked}: ask for at least 1 token.", param=name)
    if target.named or target.max_output is None:
        return asked
    return min(asked, target.max_output)


def _reasoning(fields: Fields, target: Target, out: dict[str, Any], kit: tools.Kit) -> bool:
    """Write the effort beside the output format; tell whether thinking is certainly on.

    A forced tool call leaves no room for thinking, which some platforms refuse beside it: the effort is sent alone.
    """
    config: dict[str, Any] = fields.take("output_config", OBJECT) or {}
    own = fields.raw("thinking")
    effort = target.effort
    if effort is Effort.none:
        out["thinking"] = _NO_THINKING
    elif effort is not None:
        config["effort"] = max(effort, Effort.low).name  # Messages has no minimal
        if own is not None or not kit.forced:
            out["thinking"] = own or _THINKING
    elif own is not None:
        out["thinking"] = own
    if kit.format is not None:
        config["format"] = kit.format
    if config:
        out["output_config"] = config
    return out.get("thinking") is _THINKING


def _sampling(fields: Fields, out: dict[str, Any], *, thinks: bool) -> None:
    temperature, asked = fields.take("temperature", NUMBER), fields.raw("temperature")
    if temperature is not None and asked is not None:
        if not 0 <= temperature <= _HOTTEST:
            raise InvalidRequest("`temperature` must be between 0 and 2.", param="temperature")
        if thinks and temperature < 1:
            fields.unmapped("temperature", "`temperature` must be 1 or left out while this model reasons.")
        elif temperature < 1:
            out["temperature"] = asked
    top_p, asked = fields.take("top_p", NUMBER), fields.raw("top_p")
    if top_p is not None and asked is not None:
        if not 0 <= top_p <= 1:
            raise InvalidRequest("`top_p` must be between 0 and 1.", param="top_p")
        if thinks and top_p < _THINKING_TOP_P:
            fields.unmapped("top_p", f"`top_p` must be at least {_THINKING_TOP_P} while this model reasons.")
        elif top_p < 1 and (fields.named or "temperature" not in out):  # newer models take one of the two
            out["top_p"] = asked


def _stop(fields: Fields, out: dict[str, Any]) -> None:
    asked = fields.take("stop", _STOP)
    sequences = [asked] if isinstance(asked, str) else asked or []
    kept = [sequence for sequence in sequences if sequence and not sequence.isspace()]
    if len(kept) != len(sequences):
        fields.unmapped("stop", "`stop` has a blank sequence: this model stops at visible characters only.")
    if kept:
        out["stop_sequences"] = kept


def _metadata(fields: Fields, out: dict[str, Any]) -> None:
    metadata = fields.take("metadata", OBJECT) or {}
    users = [metadata.pop("user_id", None), fields.raw("safety_identifier"), fields.raw("user")]
    if metadata:
        fields.unmapped("metadata", "`metadata` can hold only user_id for this model: leave the other keys out.")
    for name, user in zip(("metadata.user_id", "safety_identifier", "user"), users, strict=True):
        if user is not None:
            try:
                out.setdefault("metadata", {"user_id": TEXT.decode(user)})
            except msgspec.ValidationError as error:
                raise InvalidRequest(f"`{name}` must be a string.", param=name) from error


def _service_tier(fields: Fields, out: dict[str, Any]) -> None:
    tier = fields.take("service_tier", ANY)
    if tier is None:
        return
    mapped = _TIERS.get(tier) if isinstance(tier, str) else None
    if mapped is not None:
        out["service_tier"] = mapped
    else:
        fields.unmapped("service_tier", "`service_tier` has no counterpart at this model's provider: leave it out.")
