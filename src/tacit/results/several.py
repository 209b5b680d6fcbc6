"""Results of several evaluations: two models compared, and every public group separately."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tacit.privacy import composition
from tacit.privacy.cost import Cost, cost_line
from tacit.results import estimate as est
from tacit.results.evaluation import Evaluation
from tacit.results.figure import AUC_FIGURE
from tacit.results.run import LeftOut
from tacit.results.saved.integrity import COMPARISON_SCHEMA, GROUPS_SCHEMA, with_fingerprint
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
    first: est.Estimate
    second: est.Estimate
    run: Evaluation
    exact: tuple[float, float] | None = None

    @property
    def difference(self) -> est.Estimate:
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

    def better(self, level: float = 0.95, about: est.About = "data") -> str:
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
        return est.higher_of(self.names, self.difference.interval(level, about))

    def to_dict(self) -> dict[str, Any]:
        """The comparison as the command's JSON: plain numbers, and a fingerprint of all others."""
        run = self.run.to_dict()
        estimate = run.pop("estimate")
        for name in ("schema", "figure", "exact", "fingerprint"):
            run.pop(name, None)
        made: dict[str, Any] = {"schema": COMPARISON_SCHEMA, "difference": estimate}
        aucs = zip(("first", "second"), self.names, (self.first, self.second), strict=True)
        for index, (key, name, auc) in enumerate(aucs):
            population = est.numbers(auc.interval(0.95, "population"))
            made[key] = {"name": name, **auc.to_dict(), "population_interval": population}
            if self.exact is not None:
                made[key]["exact"] = self.exact[index]
        return with_fingerprint(made | run)

    def to_rows(self) -> list[tuple[str, str]]:
        """The comparison as labelled lines for a person."""
        run = dict(self.run.to_rows())
        rows = [("protocol", run.pop("protocol"))]
        for index, auc in enumerate((self.first, self.second)):
            line = est.estimate_line(auc)
            if self.exact is not None:
                line += f"; exact {self.exact[index]:.6f}, not private"
            rows.append((f"AUC of {self.names[index]}", line))
        apart = f"{self.names[0]} less {self.names[1]}"
        rows.append((apart, est.estimate_line(self.difference, "+")))
        if self.has_signal:
            bounds = self.difference.interval(0.95, about="population")
            rows.append((est.POPULATION_INTERVAL, est.bounds_line(bounds, "+")))
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


@dataclass(frozen=True)
class Spread:
    """How far the groups' figures lie apart.

    Parameters
    ----------
    value : the highest estimate less the lowest. Noise makes it too high on average, and more so
        with more groups: use the interval.
    low, high : the highest true figure less the lowest lies between these.
    highest, lowest : the groups with these estimates.
    among : the groups that it is about.
    """

    value: float
    low: float
    high: float
    highest: str
    lowest: str
    among: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The ``spread`` entries of the JSON."""
        return {
            "value": self.value,
            "interval": [self.low, self.high],
            "highest": self.highest,
            "lowest": self.lowest,
            "among": list(self.among),
        }


@dataclass(frozen=True, eq=False)
class Group:
    """One group's evaluation.

    Parameters
    ----------
    name : the group.
    records : how many records it has, where the guarantee leaves that open; None where it hides
        whether a record is there.
    evaluation : its figure, with its errors; None where there is none.
    reason : why there is none; empty where there is one.
    """

    name: str
    records: int | None
    evaluation: Evaluation | None
    reason: str = ""

    @property
    def estimated_records(self) -> float:
        """The size as the noisy counts of the evaluation say it; NaN where they do not."""
        known = self.evaluation
        return math.nan if known is None else known.positives + known.negatives

    @property
    def estimate(self) -> est.Estimate:
        """The figure; NaN where there is none."""
        return est.Estimate.absent("") if self.evaluation is None else self.evaluation.estimate

    def to_dict(self) -> dict[str, Any]:
        """The group's entry in the JSON."""
        size = {"records": self.records, **est.entry_of(self, ("estimated_records",))}
        result = self.evaluation and self.evaluation.to_dict()
        return {"name": self.name, **size, "reason": self.reason or None, "result": result}

    @property
    def has_signal(self) -> bool:
        """Whether there is an estimate with an error."""
        return math.isfinite(self.estimate.value) and math.isfinite(self.estimate.standard_error)


@dataclass(frozen=True, eq=False)
class GroupedEvaluation:
    """What ``evaluate_groups`` returns.

    Parameters
    ----------
    groups : the groups, in order.
    spent : the most that a record spent, over all groups together.
    figure : what was estimated of each.
    notes : what the reader must know about all groups together.
    left_out : how many incomplete records, of all groups together, were left out; None where none
        may be.
    """

    groups: tuple[Group, ...]
    spent: Cost
    figure: str = AUC_FIGURE
    notes: tuple[str, ...] = ()
    left_out: LeftOut | None = None

    def __getitem__(self, name: str) -> Group:
        """The group of this name."""
        for group in self.groups:
            if group.name == name:
                return group
        raise KeyError(f"there is no group {name!r}")

    @property
    def has_signal(self) -> bool:
        """Whether any group has an estimate."""
        return any(group.has_signal for group in self.groups)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the reader must know; sentences about one group begin with its name."""
        shared: dict[str, list[str]] = {}
        for group in self.groups:
            group_warnings = () if group.evaluation is None else group.evaluation.warnings
            for sentence in (*group_warnings, *((group.reason,) if group.reason else ())):
                shared.setdefault(sentence, []).append(group.name)
        every = len(self.groups)
        sentences = (
            sentence if len(names) == every > 1 else f"{', '.join(names)}: {sentence}"
            for sentence, names in shared.items()
        )
        return (*self.notes, *sentences)

    def spread(self, level: float = 0.95, about: est.About = "data") -> Spread | None:
        """How far the groups lie apart, over those that say anything; None for fewer than two.

        The interval is simultaneous: each of G groups has one at ``1 - (1 - level) / G``
        (Bonferroni), so that all hold together with probability ``level``. Where they do, the
        highest true figure is at least the highest lower end and at most the highest upper end,
        and the lowest likewise. A group whose interval holds every value that the figure can have
        says nothing and is left out, and still counts among the G.

        Parameters
        ----------
        level : of the interval.
        about : these records, or the population they come from.

        Raises
        ------
        ValueError : for a level outside (0, 1) or an unknown ``about``.
        """
        known = [group for group in self.groups if group.has_signal]
        if len(known) < 2:
            return None
        each = 1 - (1 - est.checked_level(level)) / len(known)
        all_bounds = [(group, group.estimate.interval(each, about)) for group in known]
        informative = [
            (group, bounds)
            for group, bounds in all_bounds
            if math.isfinite(bounds.high - bounds.low) and bounds != group.estimate.limits
        ]
        if len(informative) < 2:
            return None
        centres = [group.estimate.centre for group, _ in informative]
        lows, highs = ([bounds[end] for _, bounds in informative] for end in (0, 1))
        top, bottom = max(centres), min(centres)
        return Spread(
            top - bottom,
            max(0.0, max(lows) - min(highs)),
            max(highs) - min(lows),
            informative[centres.index(top)][0].name,
            informative[centres.index(bottom)][0].name,
            tuple(group.name for group, _ in informative),
        )

    def to_dict(self) -> dict[str, Any]:
        """The groups as the command's JSON; each result follows the schema of single results."""
        here, beyond = self.spread(), self.spread(about="population")
        made = {
            "schema": GROUPS_SCHEMA,
            "figure": self.figure,
            "spent": self.spent.to_dict(),
            "groups": [group.to_dict() for group in self.groups],
            "spread": here and here.to_dict(),
            "population_spread": beyond and beyond.to_dict(),
            "warnings": list(self.warnings),
        }
        missing = {} if self.left_out is None else {"missing": self.left_out.to_dict()}
        return with_fingerprint(made | missing)

    def to_rows(self) -> list[tuple[str, str]]:
        """The groups as labelled lines for a person."""
        rows = [("figure", f"{self.figure} within each group")]
        rows += [(group.name, _line(group)) for group in self.groups]
        spread = self.spread()
        if spread is not None:
            bounds = spread.low, spread.high
            around = f"{est.RECORDS_INTERVAL} {est.bounds_line(bounds)}"
            others = [group.name for group in self.groups if group.name not in spread.among]
            among = f"; without {', '.join(others)}" if others else ""
            ends = f"{spread.highest} over {spread.lowest}{among}"
            rows.append(("spread", f"{spread.value:.{est.decimals(bounds)}f}, {around} ({ends})"))
        if self.left_out is not None:
            rows += self.left_out.to_rows()
        rows.append(("privacy spent", _spent(self.spent)))
        if math.isfinite(self.spent.epsilon):
            rows.append(("attacks", self.spent.attacks))
        return rows

    def _repr_html_(self) -> str:
        return html_table(self.to_rows(), self.warnings)


def _size(group: Group) -> str:
    """How many records a group has, as far as that may be published."""
    if group.records is not None:
        return f"{group.records:,} record{'' if group.records == 1 else 's'}"
    if not math.isfinite(group.estimated_records):
        return "size not told"
    return f"about {max(group.estimated_records, 0.0):,.0f} records, by noisy counts"


def _line(group: Group) -> str:
    figure = est.estimate_line(group.estimate) if group.has_signal else "not enough signal"
    return f"{figure} ({_size(group)})"


def _spent(spent: Cost) -> str:
    line = cost_line(spent.to_dict(), "in all")
    limited = math.isfinite(spent.epsilon) and spent.adjacency is not None
    if limited and spent.adjacency in composition.OF_PERSON.values():
        return f"{line}: so many records of a person count over all groups together"
    return f"{line}: every record is in one group" if limited else line
