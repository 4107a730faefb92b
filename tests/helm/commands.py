"""What the product's commands take, to hold against what pages, notes and pods say."""

from __future__ import annotations

from zurelay import cli


def unknown(words: list[str]) -> list[str]:
    """Find the options in a command line (without `zurelay`) that its command doesn't have."""
    command = cli.main.commands[words[0]]
    group = getattr(command, "commands", {})
    command = next((group[word] for word in words[1:] if word in group), command)
    known = {option for each in command.params for option in each.opts}
    return [word for word in words if word.startswith("--") and word.partition("=")[0] not in known]
