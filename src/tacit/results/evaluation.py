"""The result of one evaluation: the AUC with its errors, what it cost, and how it was run."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.units import PROBABILITY
from tacit.privacy.cost import Cost, cost_line
from tacit.privacy.persons import person_line
from tacit.results.bands import numbers
from tacit.results.calibrator import Calibrator
from tacit.results.curve import Curve
from tacit.results.estimate import (
    CERTAIN_RANGE,
    POPULATION_INTERVAL,
    RECORDS_ERROR,
    RECORDS_INTERVAL,
    About,
    Estimate,
    bounds_line,
    finite,
)
from tacit.results.histogram import Histogram
from tacit.results.html_table import html_table
from tacit.results.integrity import SCHEMA, federation_entry, with_fingerprint
from tacit.results.reading import Result
from tacit.results.threshold_rates import rates_entry, rates_of_curve

LISTED = 200
"""Largest number of clients that are listed one by one."""
DRAWN = 500
"""Largest number of points of a curve that are written; the result itself has them all."""


@dataclass(frozen=True, eq=False)
class Traffic:
    """What the conversation sent.

    Parameters
    ----------
    rounds : the number of times the server asked.
    bytes_sent : bytes sent by each client, shape (K,).
    """

    rounds: int
    bytes_sent: NDArray[np.int64]

    def to_dict(self) -> dict[str, Any]:
        """The ``traffic`` entry of a result."""
        return {
            "rounds": self.rounds,
            "bytes_sent": int(self.bytes_sent.sum()),
            "bytes_sent_per_client": {
                "median": float(np.median(self.bytes_sent)),
                "max": int(self.bytes_sent.max()),
            },
        }


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
    warnings : what the reader must know about this result.
    histogram : both classes' score histograms and all that follows from them, where the server's
        view allows it; else None.
    protection : what the noise that arrived supports, where clients vanished and that is less than
        what was spent.
    release : what the influence allocation of a later evaluation may start from, as
        ``FedAUC(prior=...)`` takes it; None where the protocol starts from none.
    """

    protocol: Mapping[str, Any]
    estimate: Estimate
    roc: Curve | None
    spent: Cost
    traffic: Traffic
    clients: int
    positives: float
    noise: str
    figure: str = "AUC"
    exact: float | None = None
    warnings: tuple[str, ...] = ()
    histogram: Histogram | None = field(default=None, repr=False)
    protection: Cost | None = None
    release: Any = field(default=None, repr=False)
    negatives: float = math.nan
    participants: tuple[str, ...] = ()
    federation: str | None = None
    simulated: bool = False
    time: datetime | None = None
    unit: str = PROBABILITY
    per_person: int = 0

    @property
    def auc(self) -> Estimate:
        """The estimate, where it is an AUC.

        Raises
        ------
        AttributeError : for another figure, which is in ``estimate``.
        """
        if self.figure != "AUC":
            raise AttributeError(f"this result has no AUC; its estimate is a {self.figure}")
        return self.estimate

    def at(self, threshold: float) -> dict[str, Estimate]:
        """Precision, recall, specificity, accuracy and F1 at a threshold chosen now.

        Raises
        ------
        AttributeError : where the protocol gives no histogram.
        """
        return self._known_histogram.at(threshold)

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

    @property
    def _known_histogram(self) -> Histogram:
        if self.histogram is None:
            raise AttributeError(f"{self.protocol['name']} gives no score histogram")
        return self.histogram

    @property
    def has_signal(self) -> bool:
        """Whether there is an estimate at all; False when the noise left none."""
        return math.isfinite(self.estimate.value)

    def to_dict(self) -> dict[str, Any]:
        """The result as the command's JSON, which follows the published schema.

        Plain numbers, strings and lists; absent figures are null, and the last entry is a
        fingerprint of all others.
        """
        made: dict[str, Any] = {
            "schema": SCHEMA,
            "software": _software(),
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
        made: dict[str, Any] = {}
        if self.time is not None:
            made["time"] = f"{self.time.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        if self.clients <= LISTED:
            made["participants"] = self._participant_entries()
        if self.exact is not None:
            made["exact"] = self.exact
        if self.roc is not None:
            made["roc"] = _roc_entry(_drawn(self.roc))
        if self.histogram is not None:
            made |= self.histogram.to_dict()
        elif self.roc is not None:
            curve = _drawn(self.roc)
            rates = rates_of_curve(curve, self.positives, self.negatives)
            made["rates"] = rates_entry(curve.thresholds, rates)
        if self.protection is not None:
            made["protection"] = self.protection.to_dict()
        if self.per_person:
            made["person"] = {
                "records": self.per_person,
                "epsilon_of_a_record": finite(self.spent.epsilon / self.per_person),
            }
        return made

    @property
    def _listed_names(self) -> tuple[str, ...]:
        """The names that may be written down: one for each client, and not too many."""
        whole = len(self.participants) == self.clients <= LISTED
        return self.participants if whole else ()

    def _participant_entries(self) -> list[dict[str, Any]]:
        sent: list[int] = self.traffic.bytes_sent.tolist()
        if not self._listed_names:
            return [{"bytes_sent": size} for size in sent]
        named = zip(self._listed_names, sent, strict=True)
        return [{"name": name, "bytes_sent": size} for name, size in named]

    def _figure_entry(self) -> dict[str, Any]:
        population = self.estimate.interval(0.95, about="population")
        entry = self.estimate.to_dict() | {"population_interval": [finite(x) for x in population]}
        if self.figure == "AUC":
            return {"auc": entry}
        return {"figure": self.figure, "estimate": entry}

    def to_html(self, title: str | None = None) -> str:
        """The result as a report: one HTML page that needs no network and no other file.

        Parameters
        ----------
        title : the page's heading; None for what the federation is called, or else the protocol.

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

    def _error_rows(self) -> list[tuple[str, str]]:
        """The estimate's intervals and its error, each named for what it is about."""
        rows = []
        if self.estimate.half_range is None:
            rows += self._interval_row(RECORDS_INTERVAL, "data")
        else:
            # Ends of a certain range have at most seven decimals: none is rounded inwards.
            rows.append((CERTAIN_RANGE, bounds_line(self.estimate.interval(), ".7f")))
        rows += self._interval_row(POPULATION_INTERVAL, "population")
        if math.isfinite(self.estimate.standard_error) and self.estimate.half_range is None:
            rows.append((RECORDS_ERROR, f"{self.estimate.standard_error:.2e}"))
        return rows

    def _interval_row(self, name: str, about: About) -> list[tuple[str, str]]:
        bounds = self.estimate.interval(0.95, about)
        return [(name, bounds_line(bounds))] if all(map(math.isfinite, bounds)) else []

    def to_rows(self) -> list[tuple[str, str]]:
        """The result as labelled lines for a person."""
        rows = [("protocol", _protocol_line(self.protocol))]
        if self.has_signal:
            rows.append((self.figure, f"{self.estimate.value:.6f}"))
        else:
            rows.append((self.figure, "not enough signal"))
        rows += self._error_rows()
        if self.exact is not None:
            rows.append((f"exact {self.figure}", f"{self.exact:.6f} (computed here, not private)"))
        if self.histogram is not None:
            rows += self.histogram.to_rows()
        rows.append(("privacy spent", cost_line(self.spent.to_dict(), "a client")))
        if self.per_person:
            rows.append(("unit of privacy", person_line(self.per_person, self.spent.epsilon)))
        if self.protection is not None:
            rows.append(("noise supports", cost_line(self.protection.to_dict(), "a client")))
        sent = self.traffic.to_dict()["bytes_sent_per_client"]
        rows.append(
            (
                "sent by a client",
                f"{sent['median']:,.0f} bytes (median), {sent['max']:,} (most), "
                f"{self.traffic.rounds} round{'s' if self.traffic.rounds > 1 else ''}",
            )
        )
        rows.append(("clients", f"{self.clients:,}"))
        if self.unit != PROBABILITY:
            rows.append(("unit of scores", self.unit))
        rows.append(("noise", self.noise))
        return rows

    def to_frame(self) -> Any:
        """The result as a pandas frame of one row.

        Raises
        ------
        ImportError : when pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise ImportError(
                "to_frame needs pandas; install it with: pip install pandas"
            ) from None
        figures = self.estimate.to_dict()
        low, high = self.estimate.interval(0.95)
        return pd.DataFrame(
            [
                {
                    "protocol": self.protocol["name"],
                    ("auc" if self.figure == "AUC" else "estimate"): figures["value"],
                    "standard_error": figures["standard_error"],
                    "privacy_error": figures["privacy_error"],
                    "sampling_error": figures["sampling_error"],
                    "low": low,
                    "high": high,
                    "exact": self.exact,
                    **self.spent.to_dict(),
                    "rounds": self.traffic.rounds,
                    "bytes_sent": float(np.median(self.traffic.bytes_sent)),
                    "clients": self.clients,
                }
            ]
        )

    def plot(self, axes: Any = None) -> Any:
        """Draw the ROC curve with its 95 % band, or the AUC with its interval where there is none.

        Parameters
        ----------
        axes : matplotlib axes to draw on; None makes a new figure.

        Raises
        ------
        ImportError : when matplotlib is not installed.
        """
        from tacit.results.picture import draw_evaluation

        return draw_evaluation(self, axes)

    def _repr_html_(self) -> str:
        return html_table(self.to_rows(), self.warnings)


def _roc_entry(curve: Curve) -> dict[str, list[float | None]]:
    """The curve with the bands of its true-positive rates."""
    low, high = curve.band.limits()
    bands = {"true_positive_rate_low": numbers(low), "true_positive_rate_high": numbers(high)}
    return curve.to_dict() | bands


def _drawn(curve: Curve) -> Curve:
    """The curve at no more points than a picture needs, both ends among them."""
    size = curve.thresholds.size
    if size <= DRAWN:
        return curve
    indices = np.linspace(0, size - 1, DRAWN).round().astype(np.int64)
    named = [item.name for item in fields(curve) if getattr(curve, item.name) is not None]
    return replace(curve, **{name: getattr(curve, name)[..., indices] for name in named})


def _software() -> dict[str, str]:
    """The versions that computed a result."""
    try:
        tacit_version = version("tacit")
    except PackageNotFoundError:
        tacit_version = "not installed"
    return {"tacit": tacit_version, "python": platform.python_version(), "numpy": np.__version__}


def _protocol_line(protocol: Mapping[str, Any]) -> str:
    settings = ", ".join(f"{k} {v}" for k, v in protocol.items() if k != "name")
    return f"{protocol['name']} ({settings})" if settings else str(protocol["name"])
