"""Approvals: k of n named keys of a site sign a plan before the site answers it.

A signature is over all that an approval allows: the site, the plan's digest, which covers the
site's key, the data set's name, the rule of who signs, the number of runs, the last day, and the
entry of the site's ledger with which the approval was drafted. So it fits no other site, plan, data
set, rule or draft. Only the last draft of a plan holds, and none after a revocation: both are
entries of the ledger, which a file that is put back from a backup does not undo. The ledger's time
decides about the last day; it never goes back. The ledger's entry for every run names those who
signed, and bounds the number of runs.

A site's own files say who signs. An attacker who may change ``party.toml``, or who puts an older
ledger back, is not stopped: see docs/guides/ledger.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import NamedTuple

from tacit import files
from tacit.crypto.identities import Identity, is_signed
from tacit.ledger import entries
from tacit.ledger.files import Pages
from tacit.ledger.ledger import Ledger
from tacit.running.session import debits
from tacit.running.session.party_file import PartyFile, Rule
from tacit.running.session.plan_file import Plan
from tacit.running.session.toml_source import PlanError

KIND = b"tacit-approval/1\0"
NONE_ASKED, REVOCATION, SCOPE = "none was asked", "revoked", "out of scope"
EXPIRED, ENDED, APPROVED = "expired", "expired, as the ledger says", "approved"
USED = "no approved run is left"
"""What a plan's approval can be."""
LAST_DAY = "the last day"
"""Who ends an approval whose time is over."""
NOT_APPROVED = "its own site has not approved this run"
"""The only text that others read about a run that is not approved."""


@dataclass(frozen=True)
class Draft:
    """What an approval's file holds, as JSON.

    Parameters
    ----------
    runs : the number of runs that may be answered.
    until : the last day in UTC, as 2027-06-30.
    entry : the hash of the ledger's entry with which the approval was drafted, hexadecimal digits.
    signatures : hexadecimal digits by name.

    Raises
    ------
    AttributeError, TypeError, ValueError : for values of other kinds.
    """

    runs: int
    until: str
    entry: str
    signatures: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        digits = self.signatures.values()
        _ = (self.runs + 0, date.fromisoformat(self.until), *map(bytes.fromhex, digits))


class Standing(NamedTuple):
    """Whether a plan is approved now.

    Parameters
    ----------
    problem : why it is not, for the site alone; empty where it is.
    names : those whose signatures fit.
    sessions : the runs that were answered under the approval; one whose state was lost, and that
        began again, is there again.
    state : the same in words that name no one, from ``NONE_ASKED`` to ``APPROVED``, or how many of
        how many have signed.
    """

    problem: str
    names: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    state: str = NONE_ASKED


@dataclass(frozen=True)
class Subject:
    """What a site's people approve: a plan, for one data set of the site.

    Parameters
    ----------
    party_file : the site's file, with its rule.
    plan : the site's copy of the plan.
    """

    party_file: PartyFile
    plan: Plan

    @property
    def rule(self) -> Rule:
        """Who signs.

        Raises
        ------
        PlanError : where the site's file does not say, or names the site's own key.
        """
        rule = self.party_file.approval
        if rule is None:
            raise PlanError("the party's file has no table [approval] that says who approves")
        if any(key in rule.keys.values() for party in self.plan.parties for key in party.keys):
            raise PlanError("[approval] names the key of a site, which no person has")
        return rule

    @property
    def path(self) -> Path:
        """The approval's file."""
        ledger = self.party_file.ledger
        return ledger.with_name(f"{ledger.stem}-approvals") / f"{self.plan.digest.hex()[:32]}.json"

    @property
    def draft(self) -> Draft | None:
        """What is to be approved, or was; None where nothing is drafted.

        Raises
        ------
        PlanError : for a file that holds no draft.
        OSError : for a file that cannot be read.
        """
        try:
            return Draft(**json.loads(self.path.read_bytes())) if self.path.exists() else None
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise PlanError(f"{self.path} holds no approval: draft it again") from None

    def _write(self, draft: Draft) -> Draft:
        files.write_public(self.path, f"{json.dumps(asdict(draft), indent=1)}\n".encode())
        return draft

    def words(self, draft: Draft) -> bytes:
        """What is signed."""
        rule = [self.rule.needed, sorted((name, key.hex()) for name, key in self.rule.keys.items())]
        about = [self.party_file.name, self.plan.digest.hex(), self.party_file.dataset, rule]
        return KIND + json.dumps([about, draft.runs, draft.until, draft.entry]).encode()

    def signers(self, draft: Draft) -> tuple[str, ...]:
        """The names whose signatures fit, each once."""
        words, signed = self.words(draft), draft.signatures
        keys = sorted(self.rule.keys.items())
        return tuple(n for n, k in keys if is_signed(k, words, bytes.fromhex(signed.get(n, ""))))

    def name_of(self, identity: Identity) -> str:
        """The name under which the rule has a key.

        Raises
        ------
        PlanError : for a key that it does not have.
        """
        names = {key: name for name, key in self.rule.keys.items()}
        if identity.public not in names:
            raise PlanError("[approval] does not name the owner of this key")
        return names[identity.public]

    def begin(self, runs: int, until: date) -> Draft:
        """Draft an approval, which voids every earlier one of the plan; no one has signed it."""
        with Ledger(self.party_file.ledger) as ledger:
            entry = self.note(entries.DRAFTED, ledger, ", ".join(sorted(self.rule.keys)))
        return self._write(Draft(runs, until.isoformat(), entry.hash.hex()))

    def revoke(self, identity: Identity) -> None:
        """End all approvals of the plan.

        Raises
        ------
        PlanError : for a key that the rule does not name.
        """
        name = self.name_of(identity)
        with Ledger(self.party_file.ledger) as ledger:
            self.note(entries.REVOKED, ledger, name)

    def sign(self, draft: Draft, identity: Identity) -> Draft:
        """Add a signature to the draft's file.

        Raises
        ------
        PlanError : for a key that the rule does not name.
        """
        signature = identity.sign(self.words(draft)).hex()
        signed = {**draft.signatures, self.name_of(identity): signature}
        return self._write(replace(draft, signatures=signed))

    def note(
        self, act: entries.Act, ledger: Ledger, who: str, session: str | None = None
    ) -> entries.Receipt:
        """Write into the ledger what became of the plan's approval.

        Raises
        ------
        LedgerError : where the ledger cannot be written or does not verify.
        """
        return ledger.approve(act, self.party_file.dataset, self.plan.digest, who, session)

    @property
    def now(self) -> Standing:
        """Whether another run is approved, by the site's ledger, which is not made for it."""
        if self.party_file.approval is None:
            return Standing("")
        if not self.party_file.ledger.exists():
            return Standing("the site's ledger, in which approvals are drafted, is not here")
        with Ledger.open_readonly(self.party_file.ledger) as pages:
            return self.standing(pages)

    def standing(self, pages: Pages, session: str = "") -> Standing:
        """Whether the plan is approved at the ledger's time.

        Parameters
        ----------
        pages : the site's ledger.
        session : the run that goes on; empty for one that begins.

        Raises
        ------
        PlanError, OSError : for files that cannot be used.
        """
        draft, acts = self.draft, pages.approvals(self.party_file.dataset, self.plan.digest)
        turns = [index for index, line in enumerate(acts) if line.reason != entries.ANSWERED]
        if draft is None or not turns:
            others = any(line.kind == entries.APPROVAL for line in pages.lines())
            state = SCOPE if others else NONE_ASKED
            return Standing("no approval of this plan for this data set was drafted", state=state)
        last = acts[turns[-1]]
        if last.reason == entries.REVOKED:
            ended = entries.instant(last.time)
            state = ENDED if last.step == LAST_DAY else REVOCATION
            return Standing(f"{last.step} ended the approval on {ended:%Y-%m-%d}", state=state)
        if last.hash.hex() != draft.entry:
            said = f"{self.path} is not the approval that was drafted last"
            return Standing(said, state=SCOPE)
        names, needed = self.signers(draft), self.rule.needed
        sessions = tuple(str(line.session) for line in acts[turns[-1] + 1 :])
        problem, state = "", APPROVED
        if len(names) < needed:
            unfit = ", ".join(sorted(set(draft.signatures) - set(names))) or "none"
            problem = f"signed by {len(names)} of the {needed} needed; signatures unfit: {unfit}"
            state = f"signed by {len(names)} of {needed}"
        elif pages.now().date() > date.fromisoformat(draft.until):
            problem, state = f"the approval ended on {draft.until}", EXPIRED
        elif session not in sessions and len(sessions) >= draft.runs:
            problem, state = f"all {draft.runs} approved runs were answered", USED
        return Standing(problem, names, sessions, state)


@contextmanager
def answering(
    subject: Subject, ledger: Ledger, session: str, goes_on: bool = False
) -> Iterator[None]:
    """Let a run's answer be paid for in the block, where it is approved, and note who approved it.

    The note follows the debit and is on disk before the reply leaves. The party is alone in its
    ledger's folder, so that two runs never take the last place. An approval whose last day has
    passed is ended in the ledger, so that a clock that is set back does not revive it.

    Raises
    ------
    DeclinedError : for a run that is not approved, caused by the reason for the site alone.
    """
    if subject.party_file.approval is None:
        yield
        return
    standing = subject.standing(ledger, session if goes_on else "")
    if standing.state == EXPIRED:
        subject.note(entries.REVOKED, ledger, LAST_DAY)
    if standing.problem:
        raise debits.DeclinedError(NOT_APPROVED) from PlanError(standing.problem)
    yield
    if not goes_on or session not in standing.sessions:
        subject.note(entries.ANSWERED, ledger, ", ".join(standing.names), session)


def guarded(guard: debits.Guard, subject: Subject, ledger: Ledger) -> debits.Guard:
    """The guard, which declines what is not approved."""

    def checked(debit: debits.Debit) -> debits.Debited | None:
        # a message that is sent again when the run's state is forgotten has another answer
        with answering(subject, ledger, debit.session.hex(), goes_on=bool(debit.after)):
            return guard(debit)

    return checked
