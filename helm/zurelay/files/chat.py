"""What `helm test` runs in the sidecar's image: one chat request and one stream, through the Service."""

import http.client
import json
import os
import pathlib
import sys
import urllib.parse

URL = urllib.parse.urlsplit(os.environ["ZURELAY_URL"])
MODEL = os.environ["ZURELAY_MODEL"]
KEY_FILE = os.environ.get("ZURELAY_KEY_FILE")
SECONDS = float(os.environ.get("ZURELAY_TIMEOUT", "120"))


def ask(*, stream: bool) -> http.client.HTTPResponse:
    """Send a chat request; give the answer, or end with what it says."""
    connection = http.client.HTTPConnection(URL.hostname or "", URL.port or 80, timeout=SECONDS)
    headers = {"content-type": "application/json"}
    if KEY_FILE:
        headers["authorization"] = f"Bearer {pathlib.Path(KEY_FILE).read_text().strip()}"
    messages = [{"role": "user", "content": "Say hello in one word."}]
    connection.request(
        "POST",
        "/v1/chat/completions",
        json.dumps({"model": MODEL, "messages": messages, "stream": stream}),
        headers,
    )
    answer = connection.getresponse()
    if answer.status != http.client.OK:
        sys.exit(f"{'stream' if stream else 'chat'}: {answer.status} {answer.read().decode(errors='replace')}")
    return answer


def chat() -> None:
    """Expect an answer with a choice."""
    answer = ask(stream=False)
    body = json.loads(answer.read())
    if not body.get("choices"):
        sys.exit(f"chat: an answer without choices: {body}")
    sys.stdout.write(f"chat: answered by {answer.headers['x-zurelay-model']}\n")


def stream() -> None:
    """Expect chunks, and the end of the stream."""
    lines = [line.strip() for line in ask(stream=True) if line.strip()]
    chunks = [json.loads(line[6:]) for line in lines if line.startswith(b"data: {")]
    errors = [chunk["error"] for chunk in chunks if "error" in chunk]
    if errors or not chunks or lines[-1] != b"data: [DONE]":
        sys.exit(f"stream: no whole answer in {len(lines)} lines: {errors or lines[-1:]}")
    sys.stdout.write(f"stream: {len(chunks)} chunks, whole\n")


def leave_mesh() -> None:
    """Let Istio's proxy end, as the pod doesn't before."""
    connection = http.client.HTTPConnection("127.0.0.1", 15020, timeout=5)
    connection.request("POST", "/quitquitquit")
    connection.getresponse().read()


try:
    chat()
    stream()
finally:
    if os.environ.get("ZURELAY_MESH"):
        leave_mesh()
