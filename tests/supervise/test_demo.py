from zurelay.supervise import demo
from zurelay.supervise.loading import load


def test_the_demo_catalog_needs_no_account() -> None:
    settings = load(demo.CONFIG, {}).settings

    assert settings.listen.host == "127.0.0.1"
    assert {provider.api_key for provider in settings.providers.values()} == {None}
    assert settings.auto is not None


def test_the_demo_goes_to_the_simulated_provider() -> None:
    settings = demo.at_port(load(demo.CONFIG, {}).settings, 1234)

    assert {(provider.base_url.host, provider.base_url.port) for provider in settings.providers.values()} == {
        ("127.0.0.1", 1234)
    }


async def test_the_simulated_provider_says_its_port() -> None:
    child = await demo.start_simulator()
    try:
        assert await demo.simulator_port(child) > 1024
    finally:
        child.kill()
        await child.wait()
