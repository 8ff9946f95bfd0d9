"""The tool `fetch_page`: public pages over https as text, and no way into this network."""

import asyncio
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import weft
from weft.config import Config, ToolSettings
from weft.errors import ToolError
from weft.tools import fetch
from weft.tools.fetch import MAX_BYTES, MAX_REDIRECTS, PageFetcher, is_public

PUBLIC = "93.184.216.34"
PAGE = "<html><title>Tides</title><script>bad()</script><p>High at six.<ul><li>low at noon</ul>"


async def public(host: str, port: int) -> list[str]:
    return [PUBLIC]


def page(data: bytes, kind: str = "text/html", **headers: str) -> httpx.Response:
    return httpx.Response(200, stream=httpx.ByteStream(data), headers={"content-type": kind, **headers})


def serving(answer: Callable[[httpx.Request], httpx.Response]) -> PageFetcher:
    return PageFetcher(public, httpx.MockTransport(answer))


async def test_a_page_becomes_text_and_the_checked_address_is_the_one_that_is_asked() -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return page(PAGE.encode())

    text = await serving(answer).fetch_page("https://tides.example/today?x=1")

    assert text == "https://tides.example/today?x=1\n\nTides\nHigh at six.\n- low at noon"
    [request] = asked
    assert (request.url.host, request.headers["host"]) == (PUBLIC, "tides.example")
    assert request.extensions["sni_hostname"] == "tides.example"


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "192.168.0.1",
        "172.16.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",  # noqa: S104
        "224.0.0.1",
        "::1",
        "fe80::1%eth0",
        "fd00::1",
        "::ffff:127.0.0.1",
        "::ffff:93.184.216.34",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
    ],
)
async def test_no_private_address_is_connected_to_whatever_name_leads_there(address: str) -> None:
    async def private(host: str, port: int) -> list[str]:
        return [PUBLIC, address]

    fetcher = PageFetcher(private, httpx.MockTransport(lambda request: httpx.Response(200, text="secret")))

    assert not is_public(address)
    with pytest.raises(ToolError, match="not on the public internet"):
        await fetcher.fetch_page("https://innocent.example/")


@pytest.mark.parametrize(
    "url", ["https://127.0.0.1/", "https://localhost/", "https://[::1]/", "https://0x7f.1/"]
)
async def test_the_names_of_this_machine_are_refused_by_the_real_resolver(url: str) -> None:
    with pytest.raises(ToolError):
        await PageFetcher().fetch_page(url)


@pytest.mark.parametrize(
    "url", ["http://tides.example/", "file:///etc/passwd", "https://me:pw@tides.example/", "tides"]
)
async def test_only_plain_https_addresses_are_fetched(url: str) -> None:
    with pytest.raises(ToolError, match="no plain https address") as refusal:
        await serving(lambda request: httpx.Response(200, text="")).fetch_page(url)

    assert "pw" not in str(refusal.value)


async def test_every_redirect_is_checked_and_there_are_not_many() -> None:
    async def by_name(host: str, port: int) -> list[str]:
        return ["10.0.0.1"] if host == "inside.example" else [PUBLIC]

    def leading_to(place: str) -> PageFetcher:
        return PageFetcher(
            by_name, httpx.MockTransport(lambda request: httpx.Response(302, headers={"location": place}))
        )

    with pytest.raises(ToolError, match=r"'inside\.example' is not on the public internet"):
        await leading_to("https://inside.example/").fetch_page("https://tides.example/")
    with pytest.raises(ToolError, match="no plain https address"):
        await leading_to("http://tides.example/").fetch_page("https://tides.example/")
    with pytest.raises(ToolError, match=f"more than {MAX_REDIRECTS} times"):
        await leading_to("/again").fetch_page("https://tides.example/")


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(404, html="no"),
        page(b"%PDF", "application/pdf"),
        page(b"a" * (MAX_BYTES + 1), "text/plain"),
        page(b"xx", **{"content-encoding": "br"}),
    ],
    ids=["missing", "no text", "too long", "compressed"],
)
async def test_what_is_no_readable_page_is_refused(answer: httpx.Response) -> None:
    with pytest.raises(ToolError):
        await serving(lambda request: answer).fetch_page("https://tides.example/")


def certificate(folder: Path, host: str) -> Path:
    key, name = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)]),
    )
    made = (
        x509.CertificateBuilder(
            subject_name=name, issuer_name=name, public_key=key.public_key(), serial_number=1
        )
        .not_valid_before(datetime.now(UTC) - timedelta(days=1))
        .not_valid_after(datetime.now(UTC) + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / f"{host}.pem"
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.mark.parametrize(("host", "is_read"), [("tides.example", True), ("other.example", False)])
async def test_the_certificate_must_be_that_of_the_name_though_the_address_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, is_read: bool
) -> None:
    """A real server on loopback, which counts as public here."""
    monkeypatch.setattr(fetch, "is_public", lambda address: True)
    pem = certificate(tmp_path, host)
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(pem)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<p>High at six."
        )
        writer.close()

    async def here(name: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=ours) as server:
        port = server.sockets[0].getsockname()[1]
        trusted = ssl.create_default_context(cafile=str(pem))
        fetcher = PageFetcher(here, httpx.AsyncHTTPTransport(verify=trusted, trust_env=False))
        url = f"https://tides.example:{port}/"
        if is_read:
            assert await fetcher.fetch_page(url) == f"{url}\n\nHigh at six."
        else:
            with pytest.raises(ToolError, match="ConnectError"):
                await fetcher.fetch_page(url)


async def test_what_a_page_says_is_kept_as_from_the_web() -> None:
    call = weft.ToolCall(id="1", name="fetch_page", arguments={"url": "https://127.0.0.1/"})
    model = weft.ScriptedProvider([weft.Reply(tool_calls=(call,)), "No."])
    config = Config(tools=ToolSettings(enabled=("fetch",)))

    assistant = await weft.connect(config, provider=model, database=":memory:")
    async for _ in assistant.stream("Look it up.", session="boats"):
        pass
    await assistant.close()

    [result] = [step for step in model.requests[1].steps if step.role == "tool"]
    assert result.origin == "web"
    assert "not on the public internet" in result.content
