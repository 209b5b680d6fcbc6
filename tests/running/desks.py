"""A small federation on disk: a plan, each party's own folder, and the desks that answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

import tacit
from tacit.crypto.identities import Identity
from tacit.ledger.entries import Line
from tacit.running.session.coordinator import Coordinator
from tacit.running.session.plan_file import Plan
from tacit.running.session.service import PartyDesk

FEDAUC = 'name = "published-fedauc"\nepsilon = 1.0\nmechanism = "staircase"'
ANY = 'epsilon = 100.0\nadjacency = "label"'
"""A limit that hides labels: at other adjacencies the scores of FedAUC would be unprotected."""
HISTOGRAM = 'name = "score-histogram"\ntrust = "secure-sum"\nepsilon = 1.0'
ONE_SUM = f"{HISTOGRAM}\nheight = 4"
"""One secure sum, where ``HISTOGRAM`` takes three."""
RESPONSE = (
    'name = "published-dpauc"\nepsilon = 1.0\n'
    'mechanism = "randomised-response"\nadjacency = "label"'
)
UNLIMITED = 'epsilon = inf\nadjacency = "label"'


class Clock:
    """Seconds that pass only where somebody sleeps; something happens at one of them."""

    def __init__(self, happens: Callable[[], object] = lambda: None, at: float = 0.0) -> None:
        self.seconds, self._happens, self._at = 0.0, happens, at

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.seconds += seconds
        if self.seconds == self._at:
            self._happens()


def write_identity(path: Path) -> Identity:
    """A new key file."""
    identity = Identity.generate()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(identity.to_bytes().hex(), encoding="ascii")
    path.chmod(0o600)
    return identity


def federation(
    home: Path, protocol: str, parties: int = 3, limit: str = ANY, extra: str = ""
) -> Identity:
    """Write plan and party files into ``home``; returns the coordinator's identity."""
    coordinator = write_identity(home / "centre" / "identity.key")
    lines = [
        f'[plan]\nname = "small"\ncoordinator = "{coordinator.public.hex()}"\n{extra}',
        f"[protocol]\n{protocol}",
    ]
    for number in range(parties):
        name = "abcdefgh"[number]
        key = write_identity(home / name / "identity.key").public.hex()
        lines.append(f'[[party]]\nname = "{name}"\nkey = "{key}"')
        _write_party(home / name, name, number, limit)
    (home / "plan.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return coordinator


def _write_party(home: Path, name: str, seed: int, limit: str) -> None:
    rng = np.random.default_rng(seed)
    labels = (np.arange(60) % 3 == 0).astype(int)
    scores = np.clip(rng.normal(0.4 + 0.2 * labels, 0.2), 0, 1)
    rows = "".join(f"{score},{label}\n" for score, label in zip(scores, labels, strict=True))
    (home / "records.csv").write_text("score,label\n" + rows, encoding="ascii")
    (home / "party.toml").write_text(
        f'[party]\nname = "{name}"\nplan = "../plan.toml"\n'
        f'[data]\nfile = "records.csv"\ndataset = "registry"\n[limit]\n{limit}\n',
        encoding="utf-8",
    )


def edited(path: Path, *changes: tuple[str, str]) -> None:
    """Replace texts in a file, each once; every one of them is there."""
    text = path.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text, f"{path} does not hold {old!r}"
        text = text.replace(old, new, 1)
    path.write_text(text, encoding="utf-8")


def reopened(home: Path, index: int) -> PartyDesk:
    """A party's desk, opened anew as in a process of its own."""
    return PartyDesk.open(home / "abcdefgh"[index] / "party.toml")


def desk_of(home: Path, index: int) -> PartyDesk:
    """A party's desk, with its limit in its ledger."""
    desk = reopened(home, index)
    desk.set_limit()
    return desk


def desks_of(home: Path) -> list[PartyDesk]:
    """The desks of all parties of a federation's plan."""
    return [desk_of(home, index) for index in range(len(Plan.read(home / "plan.toml").parties))]


def coordinated(home: Path, identity: Identity) -> Coordinator:
    """A coordinator of a federation's plan."""
    return Coordinator(Plan.read(home / "plan.toml").agreement(), identity)


def advanced(
    home: Path,
    coordinator: Coordinator,
    rounds: int | None = None,
    messages: dict[int, bytes] | None = None,
    noise: Any = None,
) -> dict[int, bytes]:
    """The messages after so many rounds of a run; None goes on to its end, where there are none.

    ``messages`` are those of the first of the rounds; None opens the run.
    """
    messages = coordinator.open() if messages is None else messages
    for number in count():
        if not messages or number == rounds:
            break
        for index, message in messages.items():
            coordinator.receive(index, desk_of(home, index).answer(message, noise))
        messages = coordinator.close()
    return messages


def carried(home: Path, identity: Identity, noise: Any = None) -> Coordinator:
    """The coordinator after a whole run."""
    coordinator = coordinated(home, identity)
    advanced(home, coordinator, noise=noise)
    return coordinator


def pooled(home: Path) -> tacit.Clients:
    """The records of all parties."""
    return tacit.read([str(desk.party_file.records) for desk in desks_of(home)])


def messages_in(home: Path, name: str = "a") -> list[Line]:
    """What a party's ledger holds about messages, after it was verified."""
    with tacit.Ledger(home / name / "ledger.db") as ledger:
        ledger.verify()
        return [line for line in ledger.lines() if line.step is not None]


def told(home: Path) -> list[dict[str, Any]]:
    """What each party learned, in the one file that it wrote, which only its owner may read."""
    files = [next(iter(desk.party_file.results.glob("*.json"))) for desk in desks_of(home)]
    assert not any(file.stat().st_mode & 0o077 for file in files)
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]
