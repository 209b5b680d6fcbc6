"""What is held of one run: every query and reply, the server's result, and what a user reads."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

import tacit
from tacit.data.clients import Clients
from tacit.privacy.noise import NoiseSource, NoNoise, SimulatedNoise
from tacit.protocol.conversation import ClientState, Protocol, Query, View
from tacit.protocol.registry import protocol_kinds
from tacit.protocol.releases import conducted
from tacit.protocol.values import encode_query
from tacit.running.session.coordinator import RunError
from tacit.running.session.debits import Debit, Debited, Guard
from tacit.testing.checks import binormal_clients
from tacit.testing.rehearsal import rehearse

Line = tuple[str, str]
"""Where a value stands, and the value."""

FEDERATIONS: Mapping[str, Clients] = {
    "small": Clients(
        np.array([0, 2, 2, 5, 8, 3, 3, 6, 7, 1, 4, 4]) / 8,
        np.array([0, 0, 1, 1, 1, 0, 1, 0, 1, 0, 0, 1], dtype=np.int8),
        np.array([0, 1, 5, 12], dtype=np.int64),
    ),
    "many": binormal_clients(400, 1200, clients=10, seed=5),
}
"""A few tied records at three clients; enough records for every round."""

SOURCES: Mapping[str, Callable[[], NoiseSource]] = {
    "silent": NoNoise,
    "noisy": lambda: SimulatedNoise(7),
    "replicated": lambda: SimulatedNoise(7, replicates=3),
}


VARIES = "differs from run to run"
"""What stands for a value that follows from fresh keys."""


def golden_lines() -> dict[str, str]:
    """Every line of every registered protocol, in every configuration that the laws run.

    ``VARIES`` stands for a value about which two runs disagree.
    """
    cases = {
        name: protocol
        for kind in protocol_kinds().values()
        for name, protocol in kind.law_cases().items()
    }
    lines: dict[str, str] = {}
    for name, protocol in cases.items():
        first, second = dict(lines_of(name, protocol)), dict(lines_of(name, protocol))
        lines |= {
            place: value if second.get(place) == value else VARIES for place, value in first.items()
        }
    return lines | dict(_plans())


def lines_of(name: str, protocol: Protocol) -> Iterator[Line]:
    """All lines of one configuration.

    Parameters
    ----------
    name : of the case.
    protocol : the configuration.
    """
    yield f"{name}/guarantee", shown(protocol.guarantee)
    for federation, clients in FEDERATIONS.items():
        for source, noise in SOURCES.items():
            place = f"{name}/{federation}/{source}"
            yield from _conversation(place, protocol, clients, noise())
        yield from _published(f"{name}/{federation}", protocol, clients)
    yield from _debits(f"{name}/many", protocol)


def _published(place: str, protocol: Protocol, clients: Clients) -> Iterator[Line]:
    """The document, the text and the page of one evaluation."""
    try:
        result = tacit.evaluate(clients, protocol, seed=3, exact=True)
    except ValueError as error:
        yield f"{place}/refused", str(error)
        return
    document = result.to_dict()
    for volatile in ("made", "created", "fingerprint", "version"):
        document.pop(volatile, None)
    for key, value in document.items():
        yield f"{place}/json/{key}", shown(value)
    yield f"{place}/text", shown(str(result))
    for number, line in enumerate(_report(result)):
        yield f"{place}/report/{number}", line


def _report(result: Any) -> list[str]:
    """The words of the page without its marks and the picture of the run; a digest of every 200."""
    left_out = r"<(style|script)\b.*?</\1>|<figure class=\"run\">.*?</figure>"
    text = re.sub(left_out, " ", result.to_html(title="golden"), flags=re.DOTALL)
    text = re.sub(r"\d{4}-\d\d-\d\d[T ][\d:.]+\S*", "TIME", re.sub(r"<[^>]*>", " ", text))
    words = re.sub(r"\b[0-9a-f]{64}\b", "DIGEST", text).split()
    return [digest(" ".join(words[i : i + 200])) for i in range(0, len(words), 200)]


def _conversation(
    place: str, protocol: Protocol, clients: Clients, noise: NoiseSource
) -> Iterator[Line]:
    """Every query, what its step declares, and the reply."""
    state = ClientState()
    conversation = conducted(protocol, clients.count)
    query, turn = next(conversation), 0
    while True:
        at = f"{place}/{turn}-{query.step.name}"
        yield f"{at}/query", f"{query.view.value} {digest(encode_query(query).hex())}"
        yield f"{at}/cost", shown(query.step.cost(clients, query, state))
        yield f"{at}/records", shown(query.step.participates(clients, query))
        if query.view is View.SUM:
            yield f"{at}/sum", _declared(query)
        try:
            reply = query.step.answer(clients, query, noise, state)
        except ValueError as error:
            yield f"{at}/refused", str(error)
            return
        for field, value in reply.items():
            yield f"{at}/reply/{field}", shown(value)
        try:
            query, turn = conversation.send(reply), turn + 1
        except StopIteration as end:
            for entry in dataclasses.fields(end.value):
                yield f"{place}/result/{entry.name}", shown(getattr(end.value, entry.name))
            return
        except ValueError as error:
            yield f"{place}/refused", str(error)
            return


def _debits(place: str, protocol: Protocol) -> Iterator[Line]:
    """What every party's ledger is asked to write in a rehearsal, and the bytes that are sent."""
    debits: list[list[Debit]] = [[] for _ in range(FEDERATIONS["many"].count)]

    def guard(index: int) -> Guard:
        def noted(debit: Debit) -> Debited | None:
            debits[index].append(debit)
            return None

        return noted

    guards = [guard(index) for index in range(len(debits))]
    try:
        run = rehearse(FEDERATIONS["many"], protocol, noise=SimulatedNoise, guards=guards)
    except (RunError, ValueError) as error:
        yield f"{place}/rehearsal/refused", str(error)
        return
    for number, debit in enumerate(debits[0]):
        costs = {"cost": debit.cost, "whole": debit.whole}
        yield f"{place}/rehearsal/debit/{number}-{debit.step}", shown(costs)
    yield f"{place}/rehearsal/spent", shown(run.spent)
    yield f"{place}/rehearsal/sent", shown(run.bytes_sent)
    yield f"{place}/rehearsal/value", shown(run.server_result.value)


def _plans() -> Iterator[Line]:
    """What is predicted for consortia and platforms, under every trust."""
    for clients, records, epsilon in ((10, 40_000, 1.0), (5, 600, 1.0), (100_000, 100_000, 2.0)):
        planned = tacit.plan(
            records=records, positives=records // 5, clients=clients, epsilon=epsilon
        )
        for candidate in planned.candidates:
            place = f"plan/{clients}-{records}-{epsilon:g}/{candidate.title}"
            yield place, shown(candidate.to_dict())


def _declared(query: Query) -> str:
    """Layout, bounds and shares of a step that answers with sums."""
    step, bounded = query.step, dataclasses.replace(query, most_records=2**20)
    layout = None if step.sums is None else dict(step.sums(bounded))
    bounds = None if step.bounds is None else dict(step.bounds(bounded))
    shares = None if step.shares is None else step.shares(bounded)
    return shown({"layout": layout, "bounds": bounds, "shares": shares})


def digest(text: str) -> str:
    """Twelve hexadecimal digits of a text's digest."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def shown(value: Any) -> str:
    """A value in a line: short ones in full, others by type, shape, digest and first numbers.

    Floats are given by 10 digits, so that the order of a sum does not matter.
    """
    plain = _plain(value)
    text = json.dumps(plain, sort_keys=True, default=repr)
    if len(text) <= 100:
        return text
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape} {digest(text)} {text[:40]}"
    return f"{digest(text)} {text[:60]}"


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value if isinstance(value, str | int | None) else _object(value)


def _object(value: Any) -> Any:
    """An object by its fields, or by its public state where it is no dataclass."""
    if dataclasses.is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    state = {k: v for k, v in getattr(value, "__dict__", {}).items() if not k.startswith("_")}
    return {type(value).__name__: _plain(state)}
