from envoy_testbed import runtime
from zurelay import envoy


def test_envoy_is_started_with_the_bootstrap_and_time_to_drain() -> None:
    command = envoy.command("/bin/envoy", runtime(), 660)

    options = dict(zip(command[1::2], command[2::2], strict=False))
    assert command[0] == "/bin/envoy"
    assert options["--config-path"] == "/run/zurelay/bootstrap.json"
    assert options["--concurrency"] == "1"
    assert options["--drain-time-s"] == "660"
    assert "--disable-hot-restart" in command
