"""The result of one evaluation: the AUC with its errors, what it cost, and how it was run."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.cost import Cost
from tacit.results.calibrator import Calibrator
from tacit.results.estimate import Estimate
from tacit.results.findings import Curve
from tacit.results.histogram import Histogram

SCHEMA = "tacit.evaluation/1"


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
    warnings : what the reader must know about this result.
    histogram : both classes' score histograms and all that follows from them, where the server's
        view allows it; else None.
    protection : what the noise that arrived supports, where clients vanished and that is less than
        what was spent.
    release : what the influence allocation of a later evaluation may start from, as
        ``FedAUC(previous=...)`` takes it; None for other protocols.
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
            raise AttributeError(
                f"{self.protocol['name']} gives no score histogram; score-histogram does"
            )
        return self.histogram

    @property
    def has_signal(self) -> bool:
        """Whether there is an estimate at all; False when the noise left none."""
        return math.isfinite(self.estimate.value)

    def to_dict(self) -> dict[str, Any]:
        """The result as the command's JSON: plain numbers, strings, lists; absent figures null."""
        made: dict[str, Any] = {
            "schema": SCHEMA,
            "protocol": dict(self.protocol),
            **self._figure_entry(),
            "spent": self.spent.to_dict(),
            "traffic": self.traffic.to_dict(),
            "clients": self.clients,
            "noise": self.noise,
            "warnings": list(self.warnings),
        }
        if self.exact is not None:
            made["exact"] = self.exact
        if self.roc is not None:
            made["roc"] = self.roc.to_dict()
        if self.histogram is not None:
            made |= self.histogram.to_dict()
        if self.protection is not None:
            made["protection"] = self.protection.to_dict()
        return made

    def _figure_entry(self) -> dict[str, Any]:
        if self.figure == "AUC":
            return {"auc": self.estimate.to_dict()}
        return {"figure": self.figure, "estimate": self.estimate.to_dict()}

    def to_rows(self) -> list[tuple[str, str]]:
        """The result as labelled lines for a person."""
        interval = self.estimate.interval(0.95)
        rows = [("protocol", _protocol_line(self.protocol))]
        if self.has_signal:
            rows.append((self.figure, f"{self.estimate.value:.6f}"))
        else:
            rows.append((self.figure, "not enough signal"))
        if self.has_signal and math.isfinite(self.estimate.standard_error):
            rows.append(("95 % interval", f"{interval.low:.6f} to {interval.high:.6f}"))
        if math.isfinite(self.estimate.standard_error):
            rows.append(("standard error", f"{self.estimate.standard_error:.2e}"))
        if self.exact is not None:
            rows.append((f"exact {self.figure}", f"{self.exact:.6f} (computed here, not private)"))
        if self.histogram is not None:
            rows += self.histogram.to_rows()
        rows.append(("privacy spent", _spent_line(self.spent)))
        if self.protection is not None:
            rows.append(("noise supports", _spent_line(self.protection)))
        sent = self.traffic.to_dict()["bytes_sent_per_client"]
        rows.append(
            (
                "sent by a client",
                f"{sent['median']:,.0f} bytes (median), {sent['max']:,} (most), "
                f"{self.traffic.rounds} round{'s' if self.traffic.rounds > 1 else ''}",
            )
        )
        rows.append(("clients", f"{self.clients:,}"))
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
        lines = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td>{html.escape(value)}</td></tr>"
            for name, value in self.to_rows()
        )
        notes = "".join(f"<li>{html.escape(warning)}</li>" for warning in self.warnings)
        return f"<table>{lines}</table>" + (f"<ul>{notes}</ul>" if notes else "")


def _protocol_line(protocol: Mapping[str, Any]) -> str:
    settings = ", ".join(f"{k} {v}" for k, v in protocol.items() if k != "name")
    return f"{protocol['name']} ({settings})" if settings else str(protocol["name"])


def _spent_line(spent: Cost) -> str:
    if math.isinf(spent.epsilon):
        return "unlimited: no differential privacy"
    if spent.adjacency is None:
        return "nothing"
    delta = f", delta {spent.delta:g}" if spent.delta else ""
    return f"epsilon {spent.epsilon:g}{delta} a client, {spent.adjacency.value} adjacency"
