from typing import Any

import pytest

from zurelay.model import Url
from zurelay.settings.urls import url

URLS = {
    "https://api.openai.com/v1": Url(scheme="https", host="api.openai.com", port=443, path="/v1"),
    "http://127.0.0.1:9100/v1/": Url(scheme="http", host="127.0.0.1", port=9100, path="/v1"),
    "HTTPS://API.Example.COM": Url(scheme="https", host="api.example.com", port=443),
    "http://localhost:11434": Url(scheme="http", host="localhost", port=11434),
    "http://vllm_server:8000/": Url(scheme="http", host="vllm_server", port=8000),
    "http://[::1]:8000/v1": Url(scheme="http", host="::1", port=8000, path="/v1"),
    "http://[2001:DB8::0:1]": Url(scheme="http", host="2001:db8::1", port=80),
    "https://x.openai.azure.com/openai/deployments/gpt%206": Url(
        scheme="https", host="x.openai.azure.com", port=443, path="/openai/deployments/gpt%206"
    ),
}


@pytest.mark.parametrize(("written", "taken"), URLS.items())
def test_a_base_url_is_taken_apart(read_one: Any, written: str, taken: Url) -> None:
    assert (taken, []) == read_one(url, f'"{written}"')


HOST = "its host is no name and no address; names are of ASCII letters, digits, dots and hyphens"
PORT = "its port isn't a number from 1 to 65535"
NO_URLS = {
    "api.openai.com/v1": "expected a URL that begins with https:// or http://",
    "ftp://api.openai.com": "expected a URL that begins with https:// or http://",
    "https:/api.openai.com": "expected a URL that begins with https:// or http://",
    "https://api.openai.com/v1?a=b": "holds a ?; a provider's query goes into query: {}",
    "https://api.openai.com/v1#a": "holds a #; a fragment has no place here",
    "https://me:secret@api.openai.com": "holds a user or password; a provider's credential goes into api_key",
    "https://api.openai.com/v1/chat/completions": "names an endpoint; end it before /chat/completions or /messages",
    "https://api.anthropic.com/v1/messages/": "names an endpoint; end it before /chat/completions or /messages",
    "https://api.openai.com/a b": "its path holds a character that a URL can't; write it percent-encoded",
    "https://api.openai.com/%zz": "its path holds a character that a URL can't; write it percent-encoded",
    "https://": HOST,
    "https:///v1": HOST,
    "https://api..com": HOST,
    "https://-a.com": HOST,
    "https://exämple.com": HOST,
    "https://a b.com": HOST,
    "https://256.0.0.1": HOST,
    "https://1.2.3": HOST,
    "http://[::zz]": HOST,
    "http://[fe80::1%eth0]": HOST,
    f"https://{'a' * 64}.com": HOST,
    f"https://{'abc.' * 64}com": HOST,
    "http://::1:8000": PORT,
    "http://[::1": "its host is no name and no address; an IPv6 address stands in brackets",
    "http://[::1]8000": "its host is no name and no address; an IPv6 address stands in brackets",
    "http://a:": PORT,
    "http://a:0": PORT,
    "http://a:65536": PORT,
    "http://a:٨": PORT,
    "http://a:-1": PORT,
    "http://a:8000:1": PORT,
}


@pytest.mark.parametrize(("written", "problem"), NO_URLS.items())
def test_what_is_no_base_url_says_why_and_shows_no_secret(read_one: Any, written: str, problem: str) -> None:
    assert (None, [f"line 1: {problem}"]) == read_one(url, f'"{written}"')
