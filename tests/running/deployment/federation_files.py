"""A small federation on disk: a plan, and each party's own folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tacit.crypto.identities import Identity

FEDAUC = 'name = "published-fedauc"\nepsilon = 1.0\nmechanism = "staircase"'
ANY = 'epsilon = 100.0\nadjacency = "label"'
"""A limit that hides labels: at other adjacencies the scores of FedAUC would be unprotected."""
HISTOGRAM = 'name = "score-histogram"\ntrust = "secure-sum"\nepsilon = 1.0'


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
