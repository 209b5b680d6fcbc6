"""The result of one evaluation: the AUC with its errors, what it cost, and how it was run."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from tacit.data import units
from tacit.extras import extra
from tacit.privacy import composition
from tacit.privacy.cost import Cost, cost_line
from tacit.privacy.shuffling import Shuffled
from tacit.results.curves.calibrator import Calibrator
from tacit.results.curves.curve import Curve, RatesAt, drawn, rates_entry, rates_of_curve
from tacit.results.curves.histogram import MAX_CELLS, Histogram
from tacit.results.estimate import Estimate, decimals, finite, is_same, numbers
from tacit.results.figure import AUC_FIGURE, Figure
from tacit.results.measures.catalogue import THRESHOLDS, rates_at
from tacit.results.measures.computing import Measures
from tacit.results.measures.distances import ReleaseDrift, drift_between
from tacit.results.parts import Breakdown, Sites
from tacit.results.run import LeftOut, Traffic
from tacit.results.saved.integrity import SCHEMA, federation_entry, software_entry, with_fingerprint
from tacit.results.saved.reading import Result
from tacit.results.server_result import ServerResult
from tacit.results.text import as_lines, html_table, protocol_line

LISTED = 200
"""Largest number of clients that are listed one by one."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What ``evaluate`` returns.

    Parameters
    ----------
    protocol : the protocol's name and settings.
    estimate : the estimated figure with its errors.
    roc : the ROC curve, where the server's view allows one; else None.
    spent : the privacy that each client spent, at its most.
    traffic : rounds and bytes.
    clients : K, the number of clients.
    positives : the estimated number of positive records.
    noise : where the noise came from, ``"system"``, ``"simulated"`` or ``"none"``.
    figure : what was estimated; an AUC unless the protocol says otherwise.
    exact : the exact figure, where every record could be read; it is not private.
    negatives : the estimated number of negative records; NaN where it was not said.
    participants : the clients' names, in their order; empty where they have none, or where who took
        part is not to be written down.
    federation : what the records are called. Two results that bear one name and number of clients
        are taken to be about the same records.
    simulated : whether the clients do not exist, or the noise is not fit for a release.
    time : when it was computed, in UTC; None for a simulation, which a seed makes repeatable.
    unit : in what the protocol took scores, and thresholds are.
    per_person : the most records of a person that counted at a client, where what was spent is a
        person's; 0 where it is a record's.
    decisions : the probabilities at which net benefit and other figures of a decision are given.
    breakdown : figures of classes or of private groups; None where
        the protocol gives none.
    sites : the figures of every client that released its own counts; None where none did.
    shuffled : the central guarantee of devices' reports in sealed batches, besides what was spent;
        None where there is none.
    choice : the reason for this protocol, in a line, if none was named; else None.
    division : how the server divided epsilon by what it saw, and why; None where it was settled
        before.
    left_out : how many incomplete records were left out; None if none may be, or it is not known.
    software : the versions that computed a result that was read; None for those of this process.
    warnings : what the reader must know about this result.
    histogram : both classes' score histograms and all that follows from them, where the server's
        view allows it; else None.
    protection : what the noise that arrived supports, where clients vanished and that is less than
        what was spent.
    """

    protocol: Mapping[str, Any]
    estimate: Estimate
    roc: Curve | None
    spent: Cost
    traffic: Traffic
    clients: int
    positives: float
    noise: str
    figure: str = AUC_FIGURE
    exact: float | None = None
    warnings: tuple[str, ...] = ()
    histogram: Histogram | None = field(default=None, repr=False)
    protection: Cost | None = None
    negatives: float = math.nan
    participants: tuple[str, ...] = ()
    federation: str | None = None
    simulated: bool = False
    time: datetime | None = None
    unit: str = units.PROBABILITY
    per_person: int = 0
    decisions: tuple[float, ...] = THRESHOLDS
    breakdown: Breakdown | None = None
    sites: Sites | None = None
    shuffled: Shuffled | None = None
    choice: str | None = None
    division: str | None = None
    left_out: LeftOut | None = None
    software: Mapping[str, str] | None = field(default=None, repr=False)

    def __eq__(self, other: object) -> bool:
        """Whether all fields are the same, to the last bit."""
        return is_same(self, other) if isinstance(other, Evaluation) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.figure, self.clients, self.noise, self.time))

    def __str__(self) -> str:
        """What the command prints."""
        return as_lines(self.to_rows(), self.warnings)

    @property
    def auc(self) -> Estimate:
        """The estimate, where it is an AUC.

        Raises
        ------
        AttributeError : for another figure, which is in ``estimate``.
        """
        if not Figure.of(self.figure).is_auc:
            raise AttributeError(f"this result has no AUC; its estimate is a {self.figure}")
        return self.estimate

    def at(self, threshold: float) -> RatesAt:
        """Sensitivity, precision and the other rates at a threshold chosen now, by either name.

        Raises
        ------
        AttributeError : where the protocol gives no histogram.
        """
        return rates_at(self._known_histogram, threshold)

    def calibrator(self, method: str = "bbq") -> Calibrator:
        """A map from scores to calibrated probabilities, at no further cost.

        Parameters
        ----------
        method : ``"binning"``, ``"bbq"``, ``"isotonic"`` or ``"platt"``.

        Raises
        ------
        AttributeError : where the protocol gives no histogram.
        """
        return self._known_histogram.calibrator(method)

    @cached_property
    def measures(self) -> Measures:
        """Net benefit, calibration, losses, operating points and curves, at no further cost.

        Raises
        ------
        AttributeError : where the protocol gives no histogram.

        Examples
        --------
        >>> import tacit
        >>> scores, labels = tacit.binormal_scores(500, 1500, 0.8, seed=0)
        >>> clients = tacit.Clients.split(scores, labels, clients=10, seed=0)
        >>> result = tacit.evaluate(clients, tacit.ScoreHistogram("exact-sum"))
        >>> round(result.measures.by_name["prevalence"].value, 4)
        0.25
        """
        return Measures(self._known_histogram, self.decisions)

    def drift(self, earlier: Evaluation) -> ReleaseDrift:
        """How far the scores moved since an earlier release, less what noise adds.

        Raises
        ------
        AttributeError : where one of the protocols gives no histogram.
        ValueError : for releases with other cells, or with too few records.
        """
        return drift_between(earlier._known_histogram, self._known_histogram)

    @property
    def _known_histogram(self) -> Histogram:
        if self.histogram is None:
            raise AttributeError(f"{self.protocol['name']} gives no score histogram")
        return self.histogram

    @property
    def has_signal(self) -> bool:
        """Whether there is an estimate at all; False when the noise left none."""
        return math.isfinite(self.estimate.value)

    @property
    def metrics(self) -> dict[str, float]:
        """The figures as numbers by name, for programs that keep metrics of runs.

        They are the figure (``auc``), the ends of its 95 % interval about these records and about
        the population, its standard error about these records, what was spent (``epsilon``,
        ``delta``), and how many clients took part. What is not known, or is infinite, has no entry:
        without noise there is no ``epsilon``.

        Examples
        --------
        >>> import tacit
        >>> clients = tacit.Clients.from_arrays([0.1, 0.9], [0, 1], ["north", "south"])
        >>> tacit.evaluate(clients, tacit.ExactAUC()).metrics["auc"]
        1.0
        """
        figure = Figure.of(self.figure).key
        low, high = self.estimate.interval()
        population = self.estimate.interval(about="population")
        known = {
            figure: self.estimate.value,
            f"{figure}_low": low,
            f"{figure}_high": high,
            f"{figure}_population_low": population.low,
            f"{figure}_population_high": population.high,
            f"{figure}_standard_error": self.estimate.standard_error,
            "epsilon": self.spent.epsilon,
            "delta": self.spent.delta,
            "clients": self.clients,
        }
        return {name: float(value) for name, value in known.items() if math.isfinite(value)}

    def to_dict(self) -> dict[str, Any]:
        """The result as the command's JSON, which follows the published schema.

        Plain numbers, strings and lists; absent figures are null, and the last entry is a
        fingerprint of all others.
        """
        made: dict[str, Any] = {
            "schema": SCHEMA,
            "software": dict(self.software or software_entry()),
            "protocol": dict(self.protocol),
            **self._figure_entry(),
            "spent": self.spent.to_dict(),
            "traffic": self.traffic.to_dict(),
            "clients": self.clients,
            "federation": federation_entry(self.federation, self.clients, self._listed_names),
            "unit": self.unit,
            "noise": self.noise,
            "simulation": self.simulated or self.noise == "simulated",
            "warnings": list(self.warnings),
            "positives": finite(self.positives),
            "negatives": finite(self.negatives),
        }
        return with_fingerprint(made | self._optional_entries())

    def _optional_entries(self) -> dict[str, Any]:
        """The entries that only some results have."""
        names, curve = self._listed_names, None if self.roc is None else drawn(self.roc)
        are_listed = self.clients <= LISTED and self.traffic.summary is None
        made = _known(
            choice=self.choice,
            division=self.division,
            time=self.time and f"{self.time.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
            participants=self.traffic.by_client(names) if are_listed else None,
            exact=self.exact,
            missing=self.left_out and self.left_out.to_dict(names),
            roc=curve and curve.to_dict(),
        )
        if self.histogram is not None:
            made |= self.histogram.to_dict() | self.measures.to_dict()
            if self.histogram.counts.shape[-1] <= MAX_CELLS:
                made["histogram"] = self.histogram.stored()
        elif curve is not None:
            rates = rates_of_curve(curve, self.positives, self.negatives)
            made["rates"] = rates_entry(curve.thresholds, rates)
        if self.breakdown is not None:
            of_parts = self.breakdown.to_dict()
            measures = made.get("measures", {}) | of_parts.get("measures", {})
            made |= of_parts | ({"measures": measures} if measures else {})
        if self.sites is not None:
            made |= self.sites.to_dict(names)
        return made | self._privacy_entries()

    def _figure_entry(self) -> dict[str, Any]:
        """The estimate with its errors, called ``auc`` where it is one."""
        population = numbers(self.estimate.interval(0.95, about="population"))
        entry = self.estimate.to_dict() | {"population_interval": population}
        if Figure.of(self.figure).is_auc:
            return {"auc": entry}
        return {"figure": self.figure, "estimate": entry}

    def _privacy_entries(self) -> dict[str, Any]:
        """The entries besides what was spent."""
        person = None
        if self.per_person:
            of_a_record = finite(self.spent.epsilon / self.per_person)
            person = {"records": self.per_person, "epsilon_of_a_record": of_a_record}
        return _known(
            protection=self.protection and self.protection.to_dict(),
            person=person,
            shuffled=self.shuffled and asdict(self.shuffled),
        )

    @property
    def _listed_names(self) -> tuple[str, ...]:
        """The names that may be written down: one for each client, and not too many."""
        whole = len(self.participants) == self.clients <= LISTED
        return self.participants if whole else ()

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Evaluation:
        """The result that ``to_dict`` or the command's JSON states; as ``load``."""
        from tacit.results.saved.restoring import restored

        return restored(cls, content, "the content")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result as JSON, which ``tacit report`` and ``load`` read.

        Raises
        ------
        OSError : where the file cannot be written.
        """
        Path(path).write_text(json.dumps(self.to_dict(), allow_nan=False), encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Evaluation:
        """The result in a file of ``save`` or of the command's JSON.

        Figures, curves and the histogram are as they were written: a curve of more than 500 points
        has 500 of them. Written again, the result has the same bytes. What the file does not state
        is absent: single clients' traffic where there are more than 200 clients, and a histogram of
        more than ``2**14`` cells with its measures.

        Raises
        ------
        OSError : where the file cannot be read.
        ValueError : for a file that is no result, was changed, or does not follow the schema.

        Examples
        --------
        >>> import tempfile, tacit
        >>> records = tacit.binormal_scores(500, 1500, 0.8, seed=0)
        >>> result = tacit.evaluate(records, "dpauc", epsilon=1.0, seed=1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result.save(f"{folder}/result.json")
        ...     again = Evaluation.load(f"{folder}/result.json")
        >>> again.auc == result.auc, str(again) == str(result)
        (True, True)
        """
        from tacit.results.saved.reading import parsed
        from tacit.results.saved.restoring import restored

        return restored(cls, parsed(os.fspath(path)), os.fspath(path))

    def to_html(self, title: str | None = None) -> str:
        """The result as a report: one HTML page that needs no network and no other file.

        Parameters
        ----------
        title : the page's heading; None for the federation's name, or else what was measured of
            whom.

        Examples
        --------
        >>> import tacit
        >>> scores, labels = tacit.binormal_scores(500, 1500, 0.8, seed=0)
        >>> clients = tacit.Clients.split(scores, labels, clients=10, seed=0)
        >>> page = tacit.evaluate(clients, tacit.DPAUC(1.0), seed=1).to_html("A trial")
        >>> "<title>A trial</title>" in page, "<script src" in page
        (True, False)
        """
        from tacit.reporting.page import report

        return report([Result.of(self.to_dict(), str(self.protocol["name"]))], title)

    def to_rows(self) -> list[tuple[str, str]]:
        """The result as labelled lines for a person."""
        if self.has_signal:
            figure = f"{self.estimate.value:.{decimals(self.estimate.interval())}f}"
        elif self.protocol.get("reveal") == "parties":
            figure = "told to the parties alone"
        else:
            figure = "not enough signal"
        exact = None if self.exact is None else f"{self.exact:.6f} (computed here, not private)"
        names = self._listed_names
        rows: list[tuple[str, str | None]] = [
            ("protocol", protocol_line(self.protocol)),
            ("chosen", self.choice),
            ("epsilon divided", self.division),
            (self.figure, figure),
            *self.estimate.to_rows(),
            (f"exact {self.figure}", exact),
        ]
        if self.histogram is not None:
            rows += self.measures.to_rows()
        rows += self.breakdown.to_rows() if self.breakdown else []
        rows += self.sites.to_rows(names) if self.sites else []
        rows += self._privacy_rows()
        rows += [("sent by a client", self.traffic.line), ("clients", f"{self.clients:,}")]
        rows += self.left_out.to_rows(names) if self.left_out else []
        unit = None if self.unit == units.PROBABILITY else self.unit
        rows += [("unit of scores", unit), ("noise", self.noise)]
        return [(name, value) for name, value in rows if value is not None]

    def _privacy_rows(self) -> list[tuple[str, str]]:
        """What was spent, and what is said besides it."""
        rows = [("privacy spent", cost_line(self.spent.to_dict(), "a client"))]
        if math.isfinite(self.spent.epsilon):
            rows.append(("attacks", self.spent.attacks))
        if self.per_person:
            person = composition.person_line(self.per_person, self.spent.epsilon)
            rows.append(("unit of privacy", person))
        if self.protection is not None:
            rows.append(("noise supports", cost_line(self.protection.to_dict(), "a client")))
        if self.shuffled is not None:
            rows.append(("sealed batches", self.shuffled.line))
        return rows

    def to_frame(self) -> Any:
        """The result as a pandas frame of one row.

        Raises
        ------
        ImportError : when pandas is not installed.
        """
        pandas = extra("pandas", "to_frame needs pandas", "pandas")
        figures = self.estimate.to_dict()
        low, high = self.estimate.interval(0.95)
        errors = ("standard_error", "privacy_error", "sampling_error")
        row = {
            "protocol": self.protocol["name"],
            Figure.of(self.figure).key: figures["value"],
            **{name: figures[name] for name in errors},
            "low": low,
            "high": high,
            "exact": self.exact,
            **self.spent.to_dict(),
            "rounds": self.traffic.rounds,
            "bytes_sent": self.traffic.median,
        }
        return pandas.DataFrame([row | {"clients": self.clients}])

    def plot(self, ax: Any = None) -> Any:
        """Draw the ROC curve with its 95 % band, or the AUC with its interval where there is none.

        Parameters
        ----------
        ax : matplotlib axes to draw on; None makes a new figure.

        Raises
        ------
        ImportError : when matplotlib is not installed.
        TypeError : for a word, with the other ways to draw.
        """
        if isinstance(ax, str):
            raise TypeError(
                f"plot takes matplotlib axes, got {ax!r:.60}; other ways to draw: "
                "tacit.RocCurveDisplay and tacit.CalibrationDisplay, each .from_result(result)"
            )
        return import_module("tacit.results.displays").draw_evaluation(self, ax)

    def _repr_html_(self) -> str:
        return html_table(self.to_rows(), self.warnings)


def _known(**entries: Any) -> dict[str, Any]:
    """The entries that are not None."""
    return {name: entry for name, entry in entries.items() if entry is not None}


def evaluation_of(
    protocol: Any,
    concluded: ServerResult,
    *,
    names: Sequence[str] = (),
    before: Sequence[str] = (),
    per_person: int = 0,
    **run: Any,
) -> Evaluation:
    """What a user reads of a run that has ended, no matter who ran it.

    A process with all records, the coordinator of a federation, the collector of a campaign and a
    simulation of devices end in this one function.

    Parameters
    ----------
    protocol : what was run, with its settings.
    concluded : the server's result.
    names : of the participants.
    before : warnings of the run, which come before those of the result.
    per_person : as the evaluation has it; where it is above 0, ``spent`` is a person's.
    run : other fields of the evaluation: what was spent and sent, by how many clients, and so on.
    """
    result = concluded.published()
    supported = result.protection and composition.of_person(result.protection, per_person)
    person = (composition.DEPENDENT,) if per_person > 1 else ()
    same = ("roc", "histogram", "breakdown", "sites", "division")
    return Evaluation(
        protocol={"name": protocol.name, **protocol.settings},
        estimate=result.estimate(),
        positives=float(result.positives),
        negatives=float(result.negatives),
        figure=protocol.figure,
        warnings=(*before, *person, *result.warnings_to(tuple(names))),
        protection=supported,
        participants=tuple(names),
        per_person=per_person,
        decisions=protocol.decisions,
        **{name: getattr(result, name) for name in same},
        **run,
    )
