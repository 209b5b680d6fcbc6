"""The collector by HTTP: acknowledgements, refusals, limits, and what it keeps to itself."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request

from tacit.collecting import service
from tacit.collecting.campaign import CampaignError
from tacit.collecting.folder import Folder
from tacit.collecting.intake import Intake
from tacit.collecting.log import Disk
from tacit.collecting.service import Bucket, application
from tacit.operating import telling
from tacit.running.deployment.flower_programs.programs import free_port
from tests.collecting import support

Client = httpx.AsyncClient


def with_client(folder: Folder, work: Callable[[Client], Awaitable[Any]], **options: Any) -> Any:
    """The result of some requests to a collector of this folder."""
    intake, rate = options.pop("intake", None), options.pop("rate", 1e6)
    collector = options.pop("collector", None)
    collector = collector or service.Collector(folder, intake or Intake(folder), rate)
    app = application(collector, **options)

    async def session() -> Any:
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            Client(transport=transport, base_url="http://collector") as client,
        ):
            return await work(client)

    return asyncio.run(session())


def test_a_report_is_stored_and_counted_once(folder: Folder) -> None:
    first, second = posted(folder, *support.messages_of(folder, 1) * 2)
    assert (first.status_code, first.json()) == (200, {"accepted": 1, "refused": []})
    assert second.status_code == 409
    assert [each.shape[0] for each in support.stored_payloads(folder)] == [1]


def posted(folder: Folder, *bodies: bytes, **options: Any) -> list[httpx.Response]:
    """The answers to bodies of reports, sent one after another."""
    headers = options.pop("headers", None)

    async def work(client: Client) -> list[httpx.Response]:
        return [await client.post("/reports", content=each, headers=headers) for each in bodies]

    made: list[httpx.Response] = with_client(folder, work, **options)
    return made


def got(folder: Folder, path: str, **options: Any) -> httpx.Response:
    """The answer to a request for a document."""

    async def work(client: Client) -> httpx.Response:
        return await client.get(path)

    made: httpx.Response = with_client(folder, work, **options)
    return made


def test_a_batch_says_which_of_its_reports_were_refused(folder: Folder) -> None:
    messages = support.messages_of(folder, 5)
    (response,) = posted(folder, b"".join([*messages[:3], messages[1], messages[4]]) + b"rest")
    assert response.status_code == 200
    # the twin of a report that is being stored is asked to come again
    refused = [(each["index"], each["reason"]) for each in response.json()["refused"]]
    assert refused == [(3, "busy"), (5, "size")]


@pytest.mark.parametrize("size", [0, 5, 10_000_000])
def test_truncated_and_oversized_bodies_are_refused(folder: Folder, size: int) -> None:
    (response,) = posted(folder, bytes(size))
    assert response.status_code == 400
    assert response.json()["refused"][0]["reason"] == "size"


@pytest.mark.parametrize("left", [False, True])
def test_a_body_does_not_come(folder: Folder, monkeypatch: pytest.MonkeyPatch, left: bool) -> None:
    """Whether its sender stays or goes."""
    monkeypatch.setattr(service, "BODY_SECONDS", 0.01)

    async def unending() -> AsyncIterator[dict[str, Any]]:
        yield {"type": "http.request", "body": b"a", "more_body": True}
        if left:
            yield {"type": "http.disconnect"}
        await asyncio.Event().wait()

    scope = {"type": "http", "method": "POST", "headers": [], "path": "/reports"}
    collector = service.Collector(folder, Intake(folder), 1e6)
    response = asyncio.run(collector.reports(Request(scope, unending().__anext__)))
    assert (response.status_code, b"slow" in response.body) == (408, True)


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_no_acknowledgement_before_the_disk_has_it(folder: Folder, call: str) -> None:
    """With a disk that fails the answer is 503, nothing is stored, and the same bytes may come."""
    faults = set[str]()
    intake, (message,) = Intake(folder, disk=support.faulty(faults)), support.messages_of(folder, 1)
    faults.add(call)

    async def work(client: Client) -> None:
        refused = await client.post("/reports", content=message)
        assert refused.status_code == 503
        assert refused.headers["Retry-After"] == "1"
        assert refused.json()["refused"][0]["reason"] == "disk"
        assert support.stored_payloads(folder)[0].shape[0] == 0
        faults.clear()
        assert (await client.post("/reports", content=message)).status_code == 200

    with_client(folder, work, intake=intake)
    assert support.stored_payloads(folder)[0].shape[0] == 1


def test_an_acknowledgement_waits_for_fsync(folder: Folder) -> None:
    order = list[str]()

    def noted(descriptor: int) -> None:
        os.fsync(descriptor)
        order.append("fsync")

    intake = Intake(folder, disk=Disk(fsync=noted))
    order.clear()
    messages = support.messages_of(folder, 3)

    async def work(client: Client) -> None:
        for message in messages:
            await client.post("/reports", content=message)
            order.append("answer")

    with_client(folder, work, intake=intake)
    assert order == ["fsync", "answer"] * 3


def test_more_than_the_rate_is_asked_to_come_again(folder: Folder) -> None:
    sent = posted(folder, *support.messages_of(folder, 3), rate=1e-6 + 2)
    assert [each.status_code for each in sent] == [200, 200, 429]


def test_a_bucket_fills_with_time() -> None:
    now = [0.0]
    bucket = Bucket(10, lambda: now[0])
    assert [bucket.take(10), bucket.take(1)] == [True, False]
    now[0] = 0.5
    assert [bucket.take(5), bucket.take(1), bucket.take(11)] == [True, False, False]


def test_documents_are_served(tmp_path: Path) -> None:
    folder = support.new_folder(tmp_path, support.terms_of(support.DOUBLE[1]))
    early = support.messages_of(folder, 300)

    async def work(client: Client) -> None:
        signed = (await client.get("/campaign")).json()
        assert signed == json.loads(folder.campaign.signed.to_json())
        assert (await client.get("/stage/1")).status_code == 404
        assert (await client.post("/reports", content=b"".join(early))).json()["accepted"] == 300
        folder.next_stage()
        assert (await client.get("/stage/1")).json()["document"].startswith("{")
        late = await client.post("/reports", content=support.messages_of(folder, 1)[0])
        assert late.json()["refused"][0]["reason"] == "stage"

    with_client(folder, work)


def test_operators_see_what_devices_do_not(folder: Folder) -> None:
    """At an address of their own; a disk that fails is told there, without its name."""
    pytest.importorskip("prometheus_client")
    address, (first, *rest) = ("127.0.0.1", free_port()), support.messages_of(folder, 500)
    collector = service.Collector(folder, Intake(folder), 1e6)

    def seen(path: str) -> httpx.Response:
        return httpx.get(f"http://{address[0]}:{address[1]}{path}", trust_env=False)

    async def work(client: Client) -> None:
        for body in (first, first, b"".join(rest)):
            await client.post("/reports", content=body)
        with telling(address, collector.operated()):
            found = [seen(path) for path in ("/health", "/estimate", "/metrics", "/campaign")]
            folder.reports.rename(folder.path / "elsewhere")
            failing = [seen("/health"), seen("/estimate")]
            folder.path.joinpath("elsewhere").rename(folder.reports)
        health, estimate, metrics, unknown = found
        assert (health.status_code, health.json()) == (200, {"process": "ok", "disk": "ok"})
        assert estimate.json()["clients"] == 500
        assert 'tacit_reports_total{outcome="accepted"} 500' in metrics.text
        assert 'tacit_reports_total{outcome="replayed"} 1' in metrics.text
        # when the first report came is no one's
        assert "created" not in metrics.text and "process_" not in metrics.text
        assert [each.status_code for each in (unknown, *failing)] == [404, 503, 503]
        assert failing[0].json() == {"process": "ok", "disk": "failing"}
        refused = pytest.raises(ValueError, match="cannot be at")
        with socket.create_server(address), refused, telling(address, collector.operated()):
            pass
        for path in ("/health", "/metrics", "/estimate"):
            assert (await client.get(path)).status_code == 404

    with_client(folder, work, collector=collector)


def test_nothing_about_a_sender_is_kept(folder: Folder) -> None:
    headers = {"User-Agent": "remembered-agent", "X-Forwarded-For": "203.0.113.77"}
    posted(folder, *support.messages_of(folder, 1), headers=headers)
    contents = [path.read_bytes() for path in folder.path.rglob("*") if path.is_file()]
    assert not any(b"remembered" in each or b"203.0.113" in each for each in contents)


def test_a_page_may_stand_beside(tmp_path: Path) -> None:
    page = tmp_path / "page"
    page.mkdir()
    (page / "index.html").write_text("<p>hello</p>", encoding="utf-8")
    assert got(support.new_folder(tmp_path), "/", page=page).text == "<p>hello</p>"


@pytest.mark.parametrize("page", [".", "campaign", "campaign/keys"])
def test_a_page_whose_folder_holds_keys_is_refused(tmp_path: Path, page: str) -> None:
    """A campaign's folder lies beside its file by default: a page there would hand out its keys."""
    folder = support.new_folder(tmp_path)
    with pytest.raises(CampaignError, match="keys and reports would be handed out"):
        application(service.Collector(folder, Intake(folder), 1e6), tmp_path / page)


def test_reports_without_a_token_use_up_nothing_of_the_rate(folder: Folder) -> None:
    messages = support.messages_of(folder, 3)
    forged = [message[:14] + bytes(16) + message[30:] for message in messages]
    bodies = [*[b"".join(forged)] * 5, *messages, b"".join([*forged, messages[2]])]
    sent = posted(folder, *bodies, rate=1e-6 + 2)
    refused, late = [(403, 0)] * 5, [(429, 0), (403, 0)]
    answers = [(each.status_code, each.json()["accepted"]) for each in sent]
    assert answers == [*refused, (200, 1), (200, 1), *late]


@pytest.mark.parametrize("number", ["0", "2", "01", "9" * 5000, "x", "%31"])
def test_other_stages_than_there_are_have_no_document(tmp_path: Path, number: str) -> None:
    folder = support.new_folder(tmp_path, support.terms_of(support.DOUBLE[1]))
    assert got(folder, f"/stage/{number}").status_code == 404
