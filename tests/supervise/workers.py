"""A worker for tests of the fleet: it does as its configuration says."""

from __future__ import annotations

import sys

SCRIPT = """
import json, os, sys, time

count = drains = 0
calls = 3
for line in sys.stdin:
    command = json.loads(line)
    reply = {"op": command["op"]}
    if command["op"] == "configure":
        word = command["config"]
        if word == "crash":
            sys.exit(1)
        if word == "freeze":
            time.sleep(60)
        if word == "problem":
            reply["problem"] = "it won't"
        if word == "babble":
            print("hello")
        if word == "leave":
            count = 1
            print(json.dumps({"op": "configured", "samples": [["requests", [], [1]]]}), flush=True)
            time.sleep(0.05)
            sys.exit(0)
    if command["op"] == "drain":
        drains += 1
    if command["op"] == "finish" and command["seconds"] == 5:
        calls = 0
    if command["op"] == "report":
        count += 1
        reply["open"] = calls
        counted = {"reports": count, "drains": drains, os.environ.get("ZURELAY_TEST", "unset"): 1}
        reply["samples"] = [[name, [], [value]] for name, value in counted.items()]
    print(json.dumps(reply), flush=True)
"""

COMMAND = (sys.executable, "-I", "-S", "-c", SCRIPT)
