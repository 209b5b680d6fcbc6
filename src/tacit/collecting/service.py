"""The collector as a web service (the extra ``collect``): documents out, reports in.

No address, header or time of a request is kept or logged. A report is acknowledged after fsync
returned; requests that arrive meanwhile are written together by the next one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from tacit import operating
from tacit.collecting.campaign import CampaignError, ReportError, evaluation_of
from tacit.collecting.folder import Folder
from tacit.collecting.intake import ACCEPTED, Intake

try:
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.cors import CORSMiddleware
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import BaseRoute, Mount, Route
    from starlette.staticfiles import StaticFiles
except ImportError:
    raise ImportError(
        "a collector needs starlette, uvicorn and httptools: pip install 'tacit[collect]'"
    ) from None

MAX_BATCH = 1000
"""Largest number of reports of one request."""

WAITING = 20_000
"""Largest number of reports that wait to be written; more are asked to come again."""

GROUP = 4000
"""Largest number of reports that are written together."""

BODY_SECONDS = 30.0
"""Longest time in which the body of a request must come."""

STATUS = {
    "slow": 408,
    "replayed": 409,
    "closed": 403,
    "token": 403,
    "busy": 503,
    "disk": 503,
    "full": 503,
    "rate": 429,
}
"""The status of a refusal; 400 for the others, which no retry mends."""

ANY_ORIGIN = Middleware(CORSMiddleware, allow_origins=["*"], allow_methods=["GET", "POST"])
"""A page may come from anywhere: best not from the collector."""


class Bucket:
    """A limit of reports a second, over all senders.

    Parameters
    ----------
    rate : reports a second; a second's worth may come at once.
    now : a clock in seconds that never goes back.
    """

    def __init__(self, rate: float, now: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._now = rate, now
        self._left, self._last = rate, now()

    def take(self, count: int) -> bool:
        """Whether so many reports may come now; a batch above a second's worth never may."""
        moment = self._now()
        self._left = min(self._rate, self._left + (moment - self._last) * self._rate)
        self._last = moment
        if count > self._left:
            return False
        self._left -= count
        return True


class Collector:
    """Requests of devices, and the one task that writes what they brought.

    Parameters
    ----------
    folder : of a signed campaign.
    intake : checks and stores reports.
    rate : largest number of reports a second.
    """

    def __init__(self, folder: Folder, intake: Intake, rate: float) -> None:
        self.folder, self._intake, self._bucket = folder, intake, Bucket(rate)
        self._queue: asyncio.Queue[tuple[bytes, asyncio.Future[str]]] = asyncio.Queue(WAITING)
        self._thread = ThreadPoolExecutor(1)
        self._writer: asyncio.Task[None] | None = None

    async def campaign(self, request: Request) -> Response:
        """The signed campaign."""
        return _json(self.folder.campaign.signed.to_json())

    async def stage(self, request: Request) -> Response:
        """The signed document of a later stage, as soon as there is one."""
        number = request.path_params["number"]
        if number in map(str, range(1, self._intake.stages)):
            with suppress(CampaignError):
                return _json(self.folder.stage(int(number)).to_json())
        return JSONResponse({"error": "there is no such stage yet"}, 404)

    async def reports(self, request: Request) -> Response:
        """Take one report, or several after one another, each refused separately."""
        self._intake.follow_stage()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await _limited_body(request, MAX_BATCH * self._intake.open.size)
        except (TimeoutError, ClientDisconnect):
            return _refusals(0, [(0, "slow")])
        size = self._intake.open.size
        if body is None:
            return _refusals(0, [(0, "size")])
        messages = [body[place : place + size] for place in range(0, max(len(body), 1), size)]
        outcomes = await self._outcomes(messages)
        self._intake.counters.update(outcomes)
        refused = [(index, each) for index, each in enumerate(outcomes) if each != ACCEPTED]
        return _refusals(len(messages) - len(refused), refused)

    def operated(self) -> operating.Operated:
        """What who operates the collector may see; devices do not."""
        checks = {
            "process": lambda: self._writer is not None and not self._writer.done(),
            "disk": lambda: operating.takes_writes(self.folder.reports),
        }
        return operating.Operated(checks, self._metrics, {"/estimate": self._estimate})

    def _metrics(self) -> list[Any]:
        counts, waiting = dict(self._intake.counters), self._queue.qsize()
        return [
            operating.counter("tacit_reports_total", "Reports that came.", "outcome", counts),
            operating.gauge("tacit_waiting_reports", "Reports that wait to be written.", waiting),
        ]

    def _estimate(self) -> dict[str, Any]:
        stages = self.folder.stages()
        return evaluation_of(self.folder.campaign, stages, self._intake.open.size).to_dict()

    @asynccontextmanager
    async def running(self, app: Starlette) -> AsyncIterator[None]:
        """Write reports while the service runs; at its end, what waits is written first."""
        self._writer = asyncio.create_task(self._write())
        try:
            yield
        finally:
            await self._queue.join()
            self._writer.cancel()
            self._thread.shutdown()
            self._intake.close()

    async def _outcomes(self, messages: list[bytes]) -> list[str]:
        """What becomes of each report; those that are refused anyway use up nothing of the rate.

        So anyone who has no tokens cannot keep out those who have.
        """
        held = [self._held(each) for each in messages]
        serials = [each for each in held if isinstance(each, int)]
        if not self._bucket.take(len(serials)):
            for serial in serials:
                self._intake.settle(serial, stored=False)
            return ["rate" if isinstance(each, int) else each for each in held]
        pairs = zip(messages, held, strict=True)
        return await asyncio.gather(*(self._outcome(*each) for each in pairs))

    def _held(self, message: bytes) -> int | str:
        """The serial number of the token of a report that may be stored; or why it may not."""
        try:
            return self._intake.check(message)
        except ReportError as error:
            return error.reason

    async def _outcome(self, message: bytes, serial: int | str) -> str:
        """What becomes of one report: accepted, or the reason why it is not."""
        if isinstance(serial, str):
            return serial
        if self._queue.full():
            self._intake.settle(serial, stored=False)
            return "full"
        stored: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait((message, stored))
        try:
            # a sender that goes away does not undo what is being written
            outcome = await asyncio.shield(stored)
        except asyncio.CancelledError:
            stored.add_done_callback(
                lambda done: self._intake.settle(serial, done.result() == ACCEPTED)
            )
            raise
        self._intake.settle(serial, outcome == ACCEPTED)
        return outcome

    async def _write(self) -> None:
        """Write groups of waiting reports, one after another."""
        loop = asyncio.get_running_loop()
        while True:
            group = [await self._queue.get()]
            while len(group) < GROUP and not self._queue.empty():
                group.append(self._queue.get_nowait())
            outcomes = await loop.run_in_executor(
                self._thread, self._stored, [message for message, _ in group]
            )
            for (_, stored), outcome in zip(group, outcomes, strict=True):
                stored.set_result(outcome)
                self._queue.task_done()

    def _stored(self, messages: list[bytes]) -> list[str]:
        """The outcomes of a group; a disk that fails refuses all of it, and the service goes on."""
        try:
            return self._intake.store(messages)
        except OSError:
            return ["disk"] * len(messages)


def application(collector: Collector, page: Path | None = None) -> Starlette:
    """The application that devices reach.

    Parameters
    ----------
    collector : answers their requests.
    page : a folder of files to serve as well, such as a page for devices.

    Raises
    ------
    CampaignError : for a page whose files would be those of the campaign, with its keys.
    """
    if page is not None:
        _check_page(page.resolve(), collector.folder.path.resolve())
    routes: list[BaseRoute] = [
        Route("/campaign", collector.campaign),
        Route("/stage/{number}", collector.stage),
        Route("/reports", collector.reports, methods=["POST"]),
    ]
    if page is not None:
        routes.append(Mount("/", StaticFiles(directory=page, html=True)))
    return Starlette(routes=routes, middleware=[ANY_ORIGIN], lifespan=collector.running)


def _check_page(page: Path, folder: Path) -> None:
    """Refuse to hand out what only the collector may read."""
    if folder.is_relative_to(page) or page.is_relative_to(folder):
        raise CampaignError(
            f"the page's folder {page} and the campaign's {folder} hold each other's files, and "
            "keys and reports would be handed out: take a --page or --folder apart"
        )


def serve(app: Starlette, host: str, port: int, certificate: Path | None, key: Path | None) -> None:
    """Serve until interrupted; uvicorn keeps no log of requests."""
    import uvicorn  # noqa: PLC0415 -- an extra

    from tacit.collecting import connections  # noqa: PLC0415 -- an extra

    connection = connections.Connection
    if certificate is not None:
        connection = connections.secured(certificate, key)
    uvicorn.run(
        app,
        host=host,
        port=port,
        loop="auto" if certificate is None else "asyncio",
        http=connection,
        # asyncio takes a whole backlog before those that were ended give back their files
        backlog=connections.CONNECTIONS,
        access_log=False,
        server_header=False,
        ws="none",
        log_level="warning",
        log_config=None if operating.is_logging() else uvicorn.config.LOGGING_CONFIG,
    )


async def _limited_body(request: Request, most: int) -> bytes | None:
    """The body, or None where it is too long."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            return None
        parts.append(part)
    return b"".join(parts)


def _refusals(accepted: int, refused: list[tuple[int, str]]) -> Response:
    """200 where at least one report was stored; else the status of the first refusal."""
    status = 200 if accepted else STATUS.get(refused[0][1], 400)
    content = {
        "accepted": accepted,
        "refused": [{"index": index, "reason": reason} for index, reason in refused],
    }
    headers = {"Retry-After": "1"} if status in {429, 503} else None
    return JSONResponse(content, status, headers)


def _json(text: str) -> Response:
    return Response(text, media_type="application/json", headers={"Cache-Control": "no-cache"})
