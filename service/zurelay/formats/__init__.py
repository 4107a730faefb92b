"""OpenAI's Chat Completions and Anthropic's Messages, each translated into the other (SPEC 9).

Pure: bytes in, bytes out. One file a direction, named by what goes in and what comes out:

    request_chat_to_messages   answer_messages_to_chat   stream_messages_to_chat
    request_messages_to_chat   answer_chat_to_messages   stream_chat_to_messages
"""

from __future__ import annotations

from zurelay.formats.contract import Answer, BadAnswer, Failure, FailureKind, Stamp, Target

__all__ = ["Answer", "BadAnswer", "Failure", "FailureKind", "Stamp", "Target"]
