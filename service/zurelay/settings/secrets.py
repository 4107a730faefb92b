"""Where a secret is: the name of a variable or the path of a file, never the secret itself."""

from __future__ import annotations

from zurelay.model import Secret
from zurelay.nearby import near
from zurelay.settings.facts import Facts
from zurelay.settings.places import At, Found
from zurelay.yamlnodes import Scalar, kind

_SOURCES = ("env", "file")


def secret(at: At, facts: Facts) -> Secret:
    """Read where a credential is; never show what stands here, it may be the credential itself."""
    if isinstance(at.node, Scalar):
        raise at.wrong(f"expected {{env: NAME}} or {{file: PATH}}, not {kind(at.node)}; keys don't belong in this file")
    if any(key not in _SOURCES and not near(key, _SOURCES) for key, _ in at.entries()):
        raise at.wrong("expected {env: NAME} or {file: PATH}; what else it says isn't shown, it could be a secret")
    found = Found(at, {"env": facts.variable, "file": facts.file})
    if at.has("env") == at.has("file"):
        raise at.wrong("expected one of env and file")
    return found.build(Secret)
