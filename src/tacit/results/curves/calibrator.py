"""Maps that recalibrate scores: fitted on private counts, saved as JSON, applied to new scores.

The fitted function is steps, lines or a logistic curve: immutable, and complete without other
objects. A ``Calibrator`` holds one and follows scikit-learn's conventions for transformers: its
settings are those of its constructor, and what it learned ends in an underscore. scikit-learn
itself is not needed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from tacit.arrays import Floats
from tacit.data import units
from tacit.metrics import calibration, logistic
from tacit.metrics.cells import binning
from tacit.results.curves.score_axis import in_unit_interval


@dataclass(frozen=True, eq=False)
class Steps:
    """A step function: ``values[k]`` from ``edges[k]`` up to, but not at, ``edges[k + 1]``.

    Edges, shape (K + 1,), ascend from 0 to 1; values, shape (K,), lie within 0 and 1. Anything else
    raises ``ValueError``.
    """

    edges: Floats
    values: Floats
    kind: ClassVar[str] = "piecewise-constant"

    def __post_init__(self) -> None:
        edges = binning.checked_edges(self.edges)
        _freeze(self, edges=edges, values=_checked_values(self.values, edges.size - 1))

    def __call__(self, scores: Floats) -> Floats:
        """The value of each score's step; 1 belongs to the last."""
        return self.values[np.searchsorted(self.edges[1:-1], scores, side="right")]


@dataclass(frozen=True, eq=False)
class Lines:
    """A function that is linear between breakpoints, and constant before the first and after the
    last.

    Breakpoints ascend within 0 and 1; values, as many, lie within 0 and 1. Anything else raises
    ``ValueError``.
    """

    knots: Floats
    values: Floats
    kind: ClassVar[str] = "piecewise-linear"

    def __post_init__(self) -> None:
        knots = _checked_values(self.knots, None, name="knots")
        if not (np.diff(knots) > 0).all():
            index = int(np.argmin(np.diff(knots) > 0))
            raise ValueError(f"`knots` must ascend, got {knots[index]} before {knots[index + 1]}")
        _freeze(self, knots=knots, values=_checked_values(self.values, knots.size))

    def __call__(self, scores: Floats) -> Floats:
        """The interpolated values; rounding takes none beyond its two breakpoints' values."""
        above = np.searchsorted(self.knots, scores, side="right")
        left = self.values[np.maximum(above - 1, 0)]
        right = self.values[np.minimum(above, self.knots.size - 1)]
        between = np.interp(scores, self.knots, self.values)
        return np.clip(between, np.minimum(left, right), np.maximum(left, right))


@dataclass(frozen=True, eq=False)
class Logistic:
    """``expit(slope * logit(s) + intercept)``, both finite; s is kept a little off 0 and 1."""

    slope: float
    intercept: float
    kind: ClassVar[str] = "logistic"

    def __post_init__(self) -> None:
        for name in ("slope", "intercept"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not math.isfinite(value):
                raise ValueError(f"{name} must be a finite number, got {value!r:.60}")

    def __call__(self, scores: Floats) -> Floats:
        """The probabilities."""
        return scipy.special.expit(self.slope * logistic.log_odds(scores) + self.intercept)


Curve = Steps | Lines | Logistic


def _checked_values(values: ArrayLike, size: int | None, name: str = "values") -> Floats:
    numbers = np.array(values, dtype=np.float64)
    if numbers.ndim != 1 or numbers.size == 0 or numbers.size != (size or numbers.size):
        raise ValueError(f"{name} must have shape ({size or 'K'},), got {numbers.shape}")
    return binning.checked_unit(numbers, name)


def _freeze(curve: Curve, **arrays: Floats) -> None:
    for name, array in arrays.items():
        array.flags.writeable = False
        object.__setattr__(curve, name, array)


SCHEMA = "tacit.calibrator/1"


Fit = Callable[[binning.ScoreCells, int | None], tuple[Any, Any]]

METHODS: Mapping[str, tuple[type[Steps] | type[Lines] | type[Logistic], Fit]] = {
    "bbq": (Steps, lambda cells, buckets: calibration.bayesian_binning(cells)),
    "binning": (Steps, calibration.histogram_binning),
    "isotonic": (Lines, lambda cells, buckets: calibration.isotonic(cells)),
    "platt": (Logistic, lambda cells, buckets: logistic.platt(cells)),
}
"""Each method's form and its fit; ``buckets`` matters to binning alone."""


class Calibrator:
    """Recalibrates scores; fitted on private counts, or as a scikit-learn transformer on records.

    ``from_counts`` fits on what a protocol releases: the result is post-processing and spends
    nothing more. ``fit`` reads plain scores and labels; it protects no one and is there to compare
    with. Either way ``curve_`` is the fitted function, in the form that ``METHODS`` names for
    ``method_``; it takes scores of ``unit_`` as ``in_unit_interval`` gives them.

    Parameters
    ----------
    method : ``"bbq"`` (Bayesian averaging of binnings), ``"binning"``, ``"isotonic"`` or
        ``"platt"``. Checked when fitting, as scikit-learn wants it.
    buckets : the number of equi-depth buckets of ``"binning"``, at most; None for the cube root of
        the effective number of records.

    Examples
    --------
    >>> import numpy as np
    >>> edges = np.array([0, 0.25, 0.5, 0.75, 1])
    >>> positives, negatives = np.array([2, 9, 31, 58]), np.array([98, 91, 69, 42])
    >>> calibrator = Calibrator.from_counts(edges, positives, negatives, method="isotonic")
    >>> calibrator.transform([0.125, 0.875])
    array([0.02, 0.58])
    """

    method_: str
    curve_: Curve
    unit_: str
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]

    def __init__(self, method: str = "bbq", buckets: int | None = None) -> None:
        self.method = method
        self.buckets = buckets

    @classmethod
    def from_counts(
        cls,
        edges: binning.Counts,
        positives: binning.Counts,
        negatives: binning.Counts,
        method: str = "bbq",
        noise_variance: Floats | float | None = None,
        buckets: int | None = None,
    ) -> Calibrator:
        """Fit on counts of both classes in score cells.

        Parameters
        ----------
        edges : the cells' edges, shape (B + 1,), ascending from 0 to 1.
        positives, negatives : the counts, shape (B,); noisy ones may be negative.
        method, buckets : as for the class.
        noise_variance : the variance of the noise on each count, a number or shape (B,); None for
            exact counts.

        Raises
        ------
        ValueError : as ``ScoreCells`` and ``from_cells`` do.
        """
        return cls.from_cells(
            binning.ScoreCells(edges, positives, negatives, noise_variance), method, buckets
        )

    @classmethod
    def from_cells(
        cls,
        cells: binning.ScoreCells,
        method: str = "bbq",
        buckets: int | None = None,
        unit: str = units.PROBABILITY,
    ) -> Calibrator:
        """Fit on score cells, as ``from_counts`` does.

        Parameters
        ----------
        cells : the counts; for another unit than probabilities in cells of ``in_unit_interval``.
        method, buckets : as for the class.
        unit : what the scores are that ``transform`` takes.

        Raises
        ------
        ValueError : for an unknown method, ``buckets`` with a method that takes none or below 1,
            counts whose total does not stand out from its noise, a unit that there is not, and
            ``"platt"`` with real numbers, which have no log-odds.
        """
        return cls(method, buckets)._fitted_on(cells, unit)

    def fit(self, X: ArrayLike, y: ArrayLike) -> Calibrator:
        """Fit on plain scores and labels, without any privacy.

        Parameters
        ----------
        X : scores, shape (n,) or (n, 1), within 0 and 1.
        y : labels, shape (n,), 0 or 1.

        Raises
        ------
        ValueError : for scores or labels that are not of this form, no record, an unknown method,
            and ``buckets`` with a method that takes none.
        """
        cells = binning.ScoreCells.from_records(binning.checked_scores(X).ravel(), y)
        fitted = self._fitted_on(cells)
        names = getattr(X, "columns", None)
        if names is not None and all(isinstance(name, str) for name in names):
            fitted.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(fitted, "feature_names_in_"):
            del fitted.feature_names_in_
        return fitted

    def transform(self, X: ArrayLike) -> Floats:
        """The probabilities of scores, in the shape they come in, (n,) or (n, 1).

        Raises
        ------
        ValueError : before fitting; for another shape, for a score that is not finite, and for a
            probability outside 0 and 1.
        """
        self._check_fitted()
        if self.unit_ == units.PROBABILITY:
            return self.curve_(binning.checked_scores(X))
        return self.curve_(in_unit_interval(binning.checked_numbers(X), self.unit_))

    def fit_transform(self, X: ArrayLike, y: ArrayLike) -> Floats:
        """Fit on plain scores and labels, and the probabilities of the same scores."""
        return self.fit(X, y).transform(X)

    @property
    def monotone(self) -> bool:
        """Whether a higher score never gets a lower probability.

        Always so for ``"isotonic"``, and for ``"platt"`` unless higher scores mean fewer positives;
        for the two binnings only where their values happen to ascend.
        """
        self._check_fitted()
        if isinstance(self.curve_, Logistic):
            return self.curve_.slope >= 0
        return bool((np.diff(self.curve_.values) >= 0).all())

    def to_json(self) -> str:
        """The fitted map as JSON; numbers are written so that they read back bit for bit.

        The unit is written where scores are no probabilities.
        """
        self._check_fitted()
        made: dict[str, Any] = {"schema": SCHEMA, "method": self.method_, "kind": self.curve_.kind}
        if self.unit_ != units.PROBABILITY:
            made["unit"] = self.unit_
        for name in _parts(self.curve_):
            value = getattr(self.curve_, name)
            made[name] = value.tolist() if isinstance(value, np.ndarray) else value
        return json.dumps(made, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Calibrator:
        """The calibrator that ``to_json`` wrote, checked like a text from an unknown source.

        Raises
        ------
        ValueError : for text that is no JSON object, another schema, an unknown method, missing or
            additional entries, and numbers that are not of the method's form.
        """
        try:
            content = json.loads(text, parse_int=float)
        except json.JSONDecodeError as error:
            raise ValueError(f"a calibrator must be JSON, got {error}") from None
        if not isinstance(content, dict):
            raise ValueError(f"a calibrator must be a JSON object, got {type(content).__name__}")
        if content.get("schema") != SCHEMA:
            raise ValueError(f"schema must be {SCHEMA!r}, got {content.get('schema')!r}")
        form = METHODS[_checked_method(content.get("method"))][0]
        unit = content.pop("unit", units.PROBABILITY)
        expected = {"schema", "method", "kind", *_parts(form)}
        if content.keys() != expected:
            raise ValueError(f"entries must be {sorted(expected)}, got {sorted(content)}")
        if content["kind"] != form.kind:
            raise ValueError(f"kind must be {form.kind!r}, got {content['kind']!r}")
        parts = {name: _json_numbers(name, content[name]) for name in _parts(form)}
        return cls(content["method"])._with(form(**parts), unit)

    def save(self, path: str | Path) -> None:
        """Write ``to_json`` to a file."""
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Calibrator:
        """Read what ``save`` wrote; raises ``ValueError`` as ``from_json`` does."""
        return cls.from_json(Path(path).read_text(encoding="utf-8"))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's settings by name; ``deep`` changes nothing, none is an estimator."""
        return {"method": self.method, "buckets": self.buckets}

    def set_params(self, **params: Any) -> Calibrator:
        """Change settings by name; what is fitted stays until ``fit``.

        Raises
        ------
        ValueError : for a name that is no setting.
        """
        for name, value in params.items():
            if name not in self.get_params():
                raise ValueError(f"settings are {sorted(self.get_params())}, got {name!r}")
            setattr(self, name, value)
        return self

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """The one column's name: the given one, the one fitted on, or ``x0``."""
        self._check_fitted()
        if input_features is None:
            return getattr(self, "feature_names_in_", np.array(["x0"], dtype=object))
        names = np.array(input_features, dtype=object)
        if names.shape != (1,):
            raise ValueError(f"input_features must hold one name, got {names.size}")
        return names

    def _fitted_on(self, cells: binning.ScoreCells, unit: str = units.PROBABILITY) -> Calibrator:
        form, fit = METHODS[_checked_method(self.method)]
        if self.buckets is not None and self.method != "binning":
            said = f"got {self.buckets} with {self.method!r}"
            raise ValueError(f"buckets is for 'binning' alone, {said}")
        return self._with(form(*fit(cells, self.buckets)), unit)

    def _with(self, curve: Curve, unit: str) -> Calibrator:
        if units.check_unit(unit) == units.REAL and self.method == "platt":
            raise ValueError("method 'platt' needs probabilities or log-odds, got scores in 'real'")
        self.method_, self.curve_, self.unit_, self.n_features_in_ = self.method, curve, unit, 1
        return self

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise ValueError("this Calibrator is not fitted: call fit, from_counts or load first")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "curve_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=True),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(one_d_array=True),
        )

    def __repr__(self) -> str:
        return f"Calibrator(method={self.method!r}, buckets={self.buckets!r})"


def _checked_method(method: Any) -> str:
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"method must be one of {sorted(METHODS)}, got {method!r}")
    return method


def _json_numbers(name: str, value: Any) -> Any:
    """A number or a list of numbers, as ``json.loads`` gives them with every number a float."""
    if not all(isinstance(v, float) for v in (value if isinstance(value, list) else [value])):
        raise ValueError(f"{name} must hold numbers, got {value!r:.60}")
    return value


def _parts(curve: Curve | type[Curve]) -> list[str]:
    return [field.name for field in fields(curve)]
