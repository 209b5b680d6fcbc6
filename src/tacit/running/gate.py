"""A site's gate: out of a training federation go only figures that the site's ledger has debited.

``Gate.measure`` runs a plan of this site alone over its records, debits the ledger before anything
is computed, and gives the plan's figures by name. ``Gate.passed`` then lets out these values, and
constants that the site declared, and refuses everything else: what it lets out it copies from the
ledger's side, so that a value that is not exactly the one that was debited never leaves. To let the
same value out again shows nothing more.

A gate is for mistakes of code that the site trusts. Code that hides what it sends can choose what
to send when, or put it into the weights of a model, which no ledger counts.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tacit import files
from tacit.ledger.entries import BudgetError
from tacit.ledger.ledger import Ledger
from tacit.results.evaluation import Evaluation
from tacit.running.evaluating import Setup
from tacit.running.session.approval import Subject, answering
from tacit.running.session.messages import MARK_BYTES
from tacit.running.session.party_file import PartyFile
from tacit.running.session.plan_file import Plan
from tacit.running.session.service import PartyDesk
from tacit.running.session.toml_source import PlanError
from tacit.running.speaking import tell_owner
from tacit.running.units import for_plan

HELD = "this site's gate held the reply; the site's own log says why"
"""The only text that others read: names of metrics may say something of records, too."""
MEASURED = "measured.json"

Number = int | float
Constants = Mapping[str, Number] | None


class HeldError(ValueError):
    """A reply that a gate refuses; the text names what was held, for the site alone."""


@contextmanager
def holding() -> Iterator[None]:
    """Hold what fails in the block, whatever the reason, and tell that the site's log alone.

    Raises
    ------
    HeldError : with ``HELD`` in the place of every error's text, which may quote records.
    """
    try:
        yield
    except Exception as error:
        tell_owner(f"{type(error).__name__}: {error}")
        raise HeldError(HELD) from None


def figures_of(result: Evaluation) -> dict[str, float]:
    """A result's ``Evaluation.metrics`` by the names under which metric records have them.

    ``tacit-auc`` (``tacit-estimate`` for another figure), ``tacit-auc-low``, and so on.
    """
    return {f"tacit-{name.replace('_', '-')}": value for name, value in result.metrics.items()}


@dataclass(frozen=True)
class Gate:
    """What may leave a site, apart from tacit's own messages.

    Parameters
    ----------
    party : the party's file.
    constants : numbers that the site declares, by name: they are the same whatever its records are.
        Anything but an integer or a floating-point number is held.
    """

    party: str | Path
    constants: Constants = None

    def measure(self) -> dict[str, float]:
        """The figures of one run over the site's records alone, which the gate then lets out.

        Its plan is the first in the party's file whose only party is this site. The ledger is
        debited the plan's guarantee first; what was measured before is let out no more.

        Raises
        ------
        PlanError : without such a plan.
        DeclinedError : without the approval that the party's file demands.
        BudgetError : where the ledger does not allow it.
        DataError : for records that cannot be used.
        """
        desk, plan, file = self._desk, self._desk.plan, self._desk.party_file
        desk.check_unit()
        desk.set_limit()
        clients = for_plan(desk.records, file.unit, plan.unit, plan.protocol)
        most, name, path = plan.per_person or None, file.dataset, file.ledger
        setup = Setup.of(clients, plan.protocol, per_person=most, federation=name, ledger=path)
        with desk.alone(), Ledger(path) as ledger:
            (file.state / MEASURED).unlink(missing_ok=True)
            with answering(Subject(file, plan), ledger, secrets.token_hex(16)):
                figures = figures_of(setup.evaluated(plan.protocol))
            content = {"entry": ledger.head.hex(), "figures": figures}
            files.write_private(file.state / MEASURED, json.dumps(content).encode())
        return figures

    def passed(self, values: Mapping[Any, Any]) -> dict[str, Number]:
        """The values, where each is one that may leave.

        Parameters
        ----------
        values : by name; the figures of the last ``measure``, and constants.

        Raises
        ------
        HeldError : names everything else that is among them; nothing leaves.
        """
        known: dict[str, Number] = {**self._measured, **(self.constants or {})}
        refuse(name for name, value in values.items() if not _is_same(value, known.get(name)))
        return {name: known[name] for name in sorted(known) if name in values}

    @property
    def _desk(self) -> PartyDesk:
        for plan in map(Plan.read, PartyFile.read(self.party).plans):
            if len(plan.parties) == 1:
                return PartyDesk.open(self.party, plan.agreement().digest[:MARK_BYTES])
        raise PlanError(f"{self.party} names no plan whose only party is this site")

    @property
    def _measured(self) -> dict[str, float]:
        """The figures of the last run, where the ledger still holds its debit; else none."""
        try:
            held = json.loads((self._desk.party_file.state / MEASURED).read_bytes())
            with Ledger.open_readonly(self._desk.party_file.ledger) as pages:
                pages.verify(bytes.fromhex(held["entry"]))
        except (FileNotFoundError, PlanError, BudgetError):
            return {}
        return dict(held["figures"])


def _is_same(value: Any, known: Number | None) -> bool:
    """Whether a value is this number, which NaN never is."""
    return type(value) is type(known) in (int, float) and bool(value == known)


def is_finite(array: Any) -> bool:
    """Whether a value is an array of finite numbers."""
    is_numeric = type(array) is np.ndarray and array.dtype.kind in "fiub"
    return is_numeric and bool(np.isfinite(array).all())


def refuse(names: Iterable[Any]) -> None:
    """Hold a reply in which something must not leave.

    Raises
    ------
    HeldError : where there are names; the text has the first of them.
    """
    listed = ", ".join([repr(name)[:40] for name in names][:8])
    if listed:
        raise HeldError(f"held a reply: undeclared, of another type, or not debited: {listed}")
