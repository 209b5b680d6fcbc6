"""Campaigns and reports for tests: small, and always the same but for their noise."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from tacit.collecting.campaign import Terms, stage_query
from tacit.collecting.folder import Folder, StoredReports, parts_of_batch
from tacit.collecting.log import DIGEST_PREFIX, Disk, Report
from tacit.local import turns
from tacit.protocol import Clients, ClientState, NoiseSource, Query, SimulatedNoise, protocol_of
from tacit.protocol.devices import Payloads

LOCAL_TREE: tuple[str, dict[str, Any]] = (
    "score-histogram",
    {"trust": "local", "epsilon": 2.0, "height": 3, "scale": "even"},
)
PLACED_TREE: tuple[str, dict[str, Any]] = (
    "score-histogram",
    {"trust": "local", "epsilon": 2.0, "height": 3},
)
SINGLE = (
    LOCAL_TREE,
    ("hierarchical-auc", {"epsilon": 2.0, "height": 4}),
    ("ustatistic", {"kernel": "auc", "epsilon": 2.0}),
)
DOUBLE = (PLACED_TREE, ("two-round-auc", {"epsilon": 2.0}))


def terms_of(case: tuple[str, dict[str, Any]] = LOCAL_TREE, devices: int = 4000) -> Terms:
    """A campaign that is open for long."""
    opens, closes = datetime(2020, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
    return Terms("a trial", protocol_of(*case), devices, opens, closes)


def records_of(count: int, seed: int = 0) -> Clients:
    """One record a client, of an AUC near 0.76."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, count).astype(np.int8)
    scores = np.clip(rng.normal(0.4 + 0.2 * labels, 0.2), 0, 1)
    return Clients(scores, labels, np.arange(count + 1))


def all_payloads(terms: Terms, clients: Clients, noise: NoiseSource) -> list[Payloads]:
    """What these devices send in all stages."""
    reports, before = terms.reports, list[Payloads]()
    first = clients.records * reports.first_turns // 256
    parts = [clients] if reports.stages == 1 else [part(clients, 0, first)]
    if reports.stages == 2:
        parts.append(part(clients, first, clients.records))
    for each in parts:
        before.append(device_payloads(terms, stage_query(terms, in_memory(before)), each, noise))
    return before


def in_memory(payloads: Sequence[Payloads]) -> list[StoredReports]:
    """Stages whose reports are in memory: none is sealed yet."""
    return [StoredReports((), each) for each in payloads]


def device_payloads(terms: Terms, query: Query, clients: Clients, noise: NoiseSource) -> Payloads:
    """What devices send that speak in a stage, one record each, shape (M, bytes).

    Parameters
    ----------
    terms : of the campaign.
    query : of the stage.
    clients : made up, one record each; all of them speak in this stage. No ledger is debited.
    noise : of a seed, or the system's where a test is about it.
    """
    state = ClientState()
    if terms.reports.first_turns:
        rounds = terms.reports.stage_of(query) or 0
        query = turns.at_their_turn(clients, query, state, rounds)
    return terms.reports.payloads(query, query.step.answer(clients, query, noise, state))


def part(clients: Clients, start: int, stop: int) -> Clients:
    """Some of the clients, one record each."""
    chosen = slice(start, stop)
    return Clients(clients.scores[chosen], clients.labels[chosen], np.arange(stop - start + 1))


def new_folder(path: Path, terms: Terms | None = None) -> Folder:
    """A folder with a signed campaign."""
    folder = Folder(path / "campaign")
    folder.signed(terms or terms_of())
    return folder


def stored_payloads(folder: Folder) -> list[Payloads]:
    """The reports of every stage, read into memory, shape (M, bytes)."""
    stages = []
    for stage in folder.stages():
        sealed = [part for file in stage.files for part in parts_of_batch(file)]
        opened = [stage.opened] if len(stage.opened) or not sealed else []
        stages.append(np.concatenate([*opened, *sealed]))
    return stages


def messages_of(folder: Folder, count: int, stage: int = 0, seed: int = 0) -> list[bytes]:
    """Reports of a stage with fresh tokens."""
    terms = folder.campaign.terms
    payloads = device_payloads(
        terms, folder.query(stage), records_of(count, seed), SimulatedNoise(seed)
    )
    start = folder.reserve_tokens(count)
    prefix = folder.campaign.digest[:DIGEST_PREFIX]
    tokens = folder.tokens.tokens(start, count)
    return [
        Report(prefix, stage, token, payload.tobytes()).to_bytes()
        for token, payload in zip(tokens, payloads, strict=True)
    ]


def faulty(faults: set[str]) -> Disk:
    """A disk that is full for the calls that are named in a set."""

    def attempt(name: str) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            if name in faults:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return getattr(os, f"f{name}" if name == "truncate" else name)(*arguments)

        return call

    return Disk(attempt("write"), attempt("fsync"), attempt("truncate"))
