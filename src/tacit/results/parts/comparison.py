"""The result of comparing two models: both AUCs, their difference, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tacit.privacy.cost import Cost
from tacit.results.estimate import (
    POPULATION_INTERVAL,
    About,
    Estimate,
    bounds_line,
    estimate_line,
    higher_of,
    numbers,
)
from tacit.results.evaluation import Evaluation
from tacit.results.saved.integrity import COMPARISON_SCHEMA, with_fingerprint
from tacit.results.text import html_table


@dataclass(frozen=True, eq=False)
class Comparison:
    """What ``compare`` returns.

    Parameters
    ----------
    names : what the two models are called.
    first, second : the models' AUCs.
    run : the evaluation of the difference, the first model's AUC less the second's: how it was
        done, what it spent and sent.
    exact : the exact AUCs, where every record could be read; they are not private.
    """

    names: tuple[str, str]
    first: Estimate
    second: Estimate
    run: Evaluation
    exact: tuple[float, float] | None = None

    @property
    def difference(self) -> Estimate:
        """The first model's AUC less the second's."""
        return self.run.estimate

    @property
    def spent(self) -> Cost:
        """The privacy that each client spent, at its most, for all three figures together."""
        return self.run.spent

    @property
    def has_signal(self) -> bool:
        """Whether there is an estimate of the difference."""
        return self.run.has_signal

    def better(self, level: float = 0.95, about: About = "data") -> str:
        """The model with the higher AUC, or nothing where the interval holds zero.

        Parameters
        ----------
        level : of the interval.
        about : these records, or the population they come from.

        Examples
        --------
        >>> import tacit
        >>> scores, labels = tacit.binormal_scores(500, 1500, 0.8, seed=0)
        >>> clients = tacit.Clients.split(scores, labels, clients=4, seed=0)
        >>> reversed_scores = 1 - clients.scores
        >>> comparison = tacit.compare(clients, reversed_scores, tacit.FedAUC(1.0), seed=1)
        >>> comparison.better()
        'first'
        """
        return higher_of(self.names, self.difference.interval(level, about))

    def to_dict(self) -> dict[str, Any]:
        """The comparison as the command's JSON: plain numbers, and a fingerprint of all others."""
        run = self.run.to_dict()
        estimate = run.pop("estimate")
        for name in ("schema", "figure", "exact", "fingerprint"):
            run.pop(name, None)
        made: dict[str, Any] = {"schema": COMPARISON_SCHEMA, "difference": estimate}
        aucs = zip(("first", "second"), self.names, (self.first, self.second), strict=True)
        for index, (key, name, auc) in enumerate(aucs):
            population = numbers(auc.interval(0.95, "population"))
            made[key] = {"name": name, **auc.to_dict(), "population_interval": population}
            if self.exact is not None:
                made[key]["exact"] = self.exact[index]
        return with_fingerprint(made | run)

    def to_rows(self) -> list[tuple[str, str]]:
        """The comparison as labelled lines for a person."""
        run = dict(self.run.to_rows())
        rows = [("protocol", run.pop("protocol"))]
        for index, auc in enumerate((self.first, self.second)):
            line = estimate_line(auc)
            if self.exact is not None:
                line += f"; exact {self.exact[index]:.6f}, not private"
            rows.append((f"AUC of {self.names[index]}", line))
        apart = f"{self.names[0]} less {self.names[1]}"
        rows.append((apart, estimate_line(self.difference, "+")))
        if self.has_signal:
            bounds = self.difference.interval(0.95, about="population")
            rows.append((POPULATION_INTERVAL, bounds_line(bounds, "+")))
            rows.append(("better", self._verdict()))
        row_names = ("privacy spent", "unit of privacy", "sent by a client", "clients", "noise")
        return rows + [(name, run[name]) for name in row_names if name in run]

    def _verdict(self) -> str:
        here, beyond = self.better(), self.better(about="population")
        if not here:
            return "neither, as far as can be told"
        where = "on these records and in the population" if beyond else "on these records"
        return f"{here}, {where}"

    def _repr_html_(self) -> str:
        return html_table(self.to_rows(), self.run.warnings)
