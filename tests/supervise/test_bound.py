import os
import signal
import subprocess
import sys

from zurelay.supervise import bound


def run(parent: int, *command: str) -> subprocess.CompletedProcess[str]:
    script = [sys.executable, "-I", "-S", bound.__file__, str(parent), *command]
    return subprocess.run(script, capture_output=True, text=True, check=False)


def test_it_becomes_the_command() -> None:
    done = run(os.getpid(), "echo", "hello")

    assert (done.returncode, done.stdout) == (0, "hello\n")


def test_it_does_not_start_when_the_parent_is_another() -> None:
    done = run(1, "echo", "hello")

    assert (done.returncode, done.stdout, done.stderr) == (1, "", "the supervisor is gone\n")


def test_the_command_gets_the_usual_sigpipe() -> None:
    code = f"import signal; print(open('/proc/self/status').read().split('SigIgn:')[1].split()[0], {signal.SIGPIPE})"
    done = run(os.getpid(), "sh", "-c", "grep SigIgn /proc/self/status")

    assert int(done.stdout.split()[1], 16) & 1 << signal.SIGPIPE - 1 == 0, code
