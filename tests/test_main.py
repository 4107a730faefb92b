import subprocess
import sys

CODE = """
import os, sys
from zurelay import __main__, server
server.main = lambda *arguments: print(arguments, 'ZURELAY_EGRESS_TOKEN' in os.environ)
sys.argv = ['zurelay', 'worker', 'worker.sock', 'egress.sock', '2', 'ends']
os.environ['ZURELAY_EGRESS_TOKEN'] = 'token'
__main__.main()
print([name for name in ('click', 'rich') if name in sys.modules])
"""


def test_a_worker_starts_without_the_command_line() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)

    assert done.stdout == "('worker.sock', 'egress.sock', 'token', 2, 'ends') False\n[]\n"


def test_the_module_runs_the_command_line() -> None:
    done = subprocess.run([sys.executable, "-m", "zurelay", "--version"], capture_output=True, text=True, check=True)

    assert done.stdout.startswith("zurelay ")
