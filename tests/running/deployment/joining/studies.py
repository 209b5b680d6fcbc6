"""A coordinator's folder with a plan, for tests of joining."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tacit.cli.federation.inviting import party_text, plan_text
from tacit.running.deployment import letters
from tacit.running.deployment.door import ROSTER_FILE
from tacit.running.deployment.inviting import admit, invite, prepare, publish_roster
from tacit.running.deployment.letters import Answer, Invitation
from tacit.running.deployment.server import Coordinator
from tacit.running.deployment.site import accept
from tacit.running.session.plan_file import Plan

SERVER = "localhost:18443"


@dataclass(frozen=True)
class Study:
    """A coordinator with a plan, and the folder beside which sites have theirs."""

    folder: Path
    coordinator: Coordinator
    plan: Path

    @classmethod
    def new(cls, folder: Path, sites: tuple[str, ...] = ("a", "b", "c")) -> Study:
        plan = folder / "centre" / "plan.toml"
        plan.parent.mkdir(parents=True)
        plan.write_text(plan_text("study", dict.fromkeys(sites)), encoding="utf-8")
        coordinator, _ = prepare(plan, SERVER)
        return cls(folder, coordinator, plan)

    def invited(self, site: str, again: bool = False) -> Invitation:
        return invite(self.plan, site, self.coordinator, SERVER, again)

    def accepted(self, site: str) -> Answer:
        invitation = self.invited(site)
        answer = accept(invitation, self.folder / site)
        text = party_text(site, server=SERVER)
        (self.folder / site / "party.toml").write_text(text, encoding="utf-8")
        return answer

    def admitted(self, site: str) -> Answer:
        answer = self.accepted(site)
        admit(self.plan, self.coordinator, answer)
        return answer

    def complete(self, clock: Callable[[], float] = time.time) -> bytes:
        """The signed roster, once every site of the plan is admitted."""
        for party in Plan.read(self.plan).parties:
            if party.key is None:
                self.admitted(party.name)
        assert publish_roster(self.plan, self.coordinator, clock)
        return (self.coordinator.private / ROSTER_FILE).read_bytes()


def quick_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Codes of the same form and fewer evaluations; what they resist is not tested with them."""
    monkeypatch.setattr(letters, "COST", 2)
