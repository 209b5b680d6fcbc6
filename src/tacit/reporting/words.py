"""What a result means, in sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

from tacit.privacy import composition
from tacit.privacy.cost import cost_line
from tacit.privacy.shuffling import Shuffled
from tacit.reporting.comparing import Difference
from tacit.results.estimate import decimals
from tacit.results.saved import reading

CERTAIN = 0.9999
"""A statement of higher probability than this is called practically certain."""
WITHOUT_LIMIT = "without limit"
"""What a report says of a cost that protects nothing."""
HIDDEN = {
    "label": "whether any one record's label is 0 or 1",
    "record": "whether any one record is in the data at all",
    "replace": "what any one record contains",
    "score": "any one record's score; labels are open",
    "person": "whether any one person's records at a client are in the data at all",
    "person-label": "whether the labels of any one person's records at a client are 0 or 1",
    "person-replace": "what any one person's records at a client contain, not how many count",
    "person-score": "the scores of any one person's records at a client; labels are open",
}
"""What each adjacency keeps deniable."""
LEAST_IN_DIGITS, MOST_IN_DIGITS = 1e-6, 1e7
"""The least size of a threshold that is written without an exponent, and that from which on it has
one."""
EXACT_DIGITS = 200
"""The number of digits in which an end is rounded outwards: enough for any number of a result."""
NOISE = {
    "system": "exact, from the operating system",
    "simulated": "simulated; it protects nobody",
    "none": "none was drawn",
}


def decimal(value: float, digits: int = 4) -> str:
    """A number with so many decimals, in words where there is none."""
    return f"{value:.{digits}f}" if math.isfinite(value) else "not known"


def threshold_text(value: float | None) -> str:
    """A threshold with four significant digits of its distance to 0, or above 1/2 to 1.

    Null in a result is the threshold that every score reaches, of scores without a least one.

    Examples
    --------
    >>> [threshold_text(value) for value in (0.25, 0.000123456, 0.999876544, -12.5, 0.0)]
    ['0.2500', '0.0001235', '0.9998765', '-12.50', '0']
    >>> threshold_text(2e-9), threshold_text(1 - 2.0**-30), threshold_text(None)
    ('2.000e-09', '1 - 9.313e-10', 'no threshold (below every score)')
    """
    if value is None or not math.isfinite(value):
        return "no threshold (below every score)"
    near_one = 0.5 < value < 1
    size = 1 - value if near_one else abs(value)
    if size == 0:
        return "0"
    if not LEAST_IN_DIGITS <= size < MOST_IN_DIGITS:
        return f"1 - {size:.3e}" if near_one else f"{value:.3e}"
    return f"{value:.{max(3 - math.floor(math.log10(size)), 0)}f}"


def signed(value: float, digits: int = 4) -> str:
    """A number with its sign; a typographic minus is read out as one."""
    sign = "\u2212" if value < 0 else "+"
    return f"{sign}{abs(value):.{digits}f}" if math.isfinite(value) else "not known"


def between(bounds: reading.Bounds, digits: int = 4) -> str:
    """An interval in words."""
    low, high = bounds
    if not (math.isfinite(low) and math.isfinite(high)):
        return "not known"
    return f"{decimal(low, digits)} to {decimal(high, digits)}"


def shown_interval(estimate: reading.Estimated, digits: int) -> tuple[str, str]:
    """Both ends of an estimate's interval; a certain one is rounded outwards, to stay certain."""
    low, high = estimate.interval
    if not estimate.is_certain:
        return decimal(low, digits), decimal(high, digits)
    unit, exact = Decimal(1).scaleb(-digits), Context(prec=EXACT_DIGITS)
    down = Decimal(repr(low)).quantize(unit, ROUND_FLOOR, exact)
    return str(down), str(Decimal(repr(high)).quantize(unit, ROUND_CEILING, exact))


def headline_sentences(result: reading.Result) -> list[str]:
    """What the figure means, and how sure it is."""
    estimate = result.estimate
    if not estimate.has_signal:
        return [
            "The noise left no signal: nothing can be said of this figure. More records, or a "
            "larger epsilon, would."
        ]
    if not result.figure.is_auc:
        return _certainty(result)
    whole = estimate.has_interval and estimate.interval[0] <= 0 and estimate.interval[1] >= 1
    if whole and estimate.is_certain:
        return [
            "The range holds every AUC there is, from 0 to 1: the thresholds tell too few records "
            "apart, and this result says nothing about the classifier."
        ]
    if whole:
        return [
            "The noise is so large that the interval holds every AUC there is, from 0 to 1: this "
            "result says nothing about the classifier."
        ]
    return [_auc_meaning(estimate.value), *_certainty(result)]


def _auc_meaning(value: float) -> str:
    share = f"{100 * min(max(value, 0.0), 1.0):.1f} %"
    return (
        "Of one positive and one negative record drawn at random, the positive one has the higher "
        f"score in about {share} of all cases; a tie counts as half. 50 % is guessing."
    )


def _certainty(result: reading.Result) -> list[str]:
    estimate, digits = result.estimate, decimals(result.estimate.interval)
    if not estimate.has_interval:
        return ["How far it is from the exact figure is not known, so no interval is given."]
    if estimate.interval[0] == estimate.interval[1]:
        sentences = ["It is the exact figure of these records."]
    else:
        how = "Certainly" if estimate.is_certain else "With 95 % confidence"
        sentences = [
            f"{how} the exact {result.figure} of these records lies between "
            f"{' and '.join(shown_interval(estimate, digits))}."
        ]
    if all(math.isfinite(bound) for bound in estimate.population_interval):
        sentences.append(
            "For the population that these records are a sample of, it lies with 95 % confidence "
            f"between {' and '.join(decimal(x, digits) for x in estimate.population_interval)}."
        )
    return sentences


def privacy_sentences(result: reading.Result) -> list[str]:
    """What the evaluation cost in privacy, and what that means."""
    spent = result.content["spent"]
    if spent["epsilon"] is None:
        return [
            "There is no differential privacy. Whoever sees what the protocol shows sees it "
            "exactly; the threat model below says what that is."
        ]
    if spent["epsilon"] == 0:
        return ["Nothing more was spent: the answers follow from what clients released before."]
    sentences = [
        f"Each client spent at most {cost_line(spent, unlimited=WITHOUT_LIMIT)}.",
        *_meaning_of(spent),
        _unit_sentence(result),
    ]
    if "protection" in result.content:
        supported = cost_line(result.content["protection"], unlimited=WITHOUT_LIMIT)
        sentences.append(
            f"Clients vanished and took their noise along: what arrived supports only {supported}."
        )
    if "shuffled" in result.content:
        shuffled = Shuffled.from_dict(result.content["shuffled"])
        sentences.append(f"Sealed batches: {shuffled.line}.")
    return sentences


def _meaning_of(spent: Mapping[str, Any]) -> list[str]:
    epsilon, delta = float(spent["epsilon"]), float(spent["delta"])
    unit = HIDDEN.get(str(spent["adjacency"]), "any one record's part in it")
    belief = 1 / (1 + math.exp(-min(epsilon, 700.0)))
    sure = "practically certain" if belief > CERTAIN else f"{100 * belief:.1f} % sure"
    chance = f", but for a chance of {delta:g}" if delta else ""
    return [
        f"That keeps deniable {unit}. Somebody who thought it a coin toss before, and sees all "
        f"that a client sent, is at most {sure} afterwards{chance}.",
    ]


def _unit_sentence(result: reading.Result) -> str:
    """Whom the epsilon protects: a record, or a person."""
    person = result.content.get("person")
    if person is None:
        return (
            "The unit is one record: a person with several records is protected by as many times "
            "that epsilon. Further evaluations of the same records add to it."
        )
    line = composition.person_line(
        int(person["records"]), float(result.content["spent"]["epsilon"])
    )
    return f"The unit is {line}. Further evaluations of the same records add to the epsilon."


def sent_sentence(result: reading.Result) -> str:
    """How much was sent, and in how many rounds."""
    traffic = result.content["traffic"]
    each = traffic["bytes_sent_per_client"]
    rounds = "one round" if traffic["rounds"] == 1 else f"{traffic['rounds']} rounds"
    return (
        f"A client sent {each['median']:,.0f} bytes (median), at most {each['max']:,}, in {rounds}."
    )


def records_sentence(result: reading.Result) -> str | None:
    """How many records there are, as far as the protocol tells."""
    positives = reading.number(result.content.get("positives"))
    negatives = reading.number(result.content.get("negatives"))
    if not (math.isfinite(positives) and math.isfinite(negatives)):
        return None
    return f"About {positives:,.0f} positive and {negatives:,.0f} negative records, as estimated."


def difference_sentence(difference: Difference, figure: str) -> str:
    """What a difference means, and about what its interval is."""
    if not difference.known:
        return f"{difference.second} and {difference.first}: the difference is not known."
    digits = decimals(difference.interval)
    verdict = (
        f"{'higher' if difference.value > 0 else 'lower'} than {difference.first}; the noise alone "
        "does not explain that"
        if difference.significant
        else f"not to be told from {difference.first}: the interval holds zero"
    )
    about = "on the same records" if difference.paired else "on the records of each"
    return (
        f"{difference.second} is {verdict}. Its exact {figure} less that of {difference.first} "
        f"{about} is {signed(difference.interval[0], digits)} to "
        f"{signed(difference.interval[1], digits)} with 95 % confidence."
    )


def pairing_sentence(all_differences: list[Difference]) -> str:
    """What the comparison takes to be the same."""
    if all(difference.paired for difference in all_differences):
        text = (
            "Paired: all results name one federation, so they are taken to be about the same "
            "records. Then only noise and approximation stand between the difference of the "
            "estimates and the difference of the exact figures. The wider interval, about the "
            "population, adds both sampling errors as if they were independent: where two "
            "classifiers rank alike it is wider than need be, for their covariance is not released."
        )
    else:
        text = (
            "Not paired: no federation was named, so it is not known whether these results are "
            "about the same records. Name it with --federation when evaluating. The wider "
            "interval, about the populations, adds the sampling errors of both."
        )
    if any(difference.shared_noise for difference in all_differences):
        text += (
            " A result spent nothing, so it used flipped labels again: noise may be shared, and "
            "errors are added up as they are, which holds whatever their correlation."
        )
    return text


def missing_sentence(result: reading.Result) -> str | None:
    """How many incomplete records were left out; None where the result does not say."""
    missing = result.content.get("missing")
    return None if missing is None else left_out_sentence(missing)


def left_out_sentence(missing: Mapping[str, Any]) -> str:
    """How many incomplete records were left out of every figure.

    Parameters
    ----------
    missing : the entry of a result.
    """
    if "records" not in missing:
        return (
            "Records without a score or a label were left out of every figure. How many they are "
            "is not in this result: whoever evaluated it could read the number."
        )
    if "spent" not in missing:
        return (
            f"{missing['scores']:,} records without a score and {missing['labels']:,} without a "
            "label were left out of every figure, counted exactly."
        )
    cost = cost_line(missing["spent"])
    low, high = missing["interval"]
    if None in (missing["records"], low, high):
        return (
            "Records without a score or a label were left out of every figure; noise of "
            f"{cost} left no number of them."
        )
    return (
        f"About {missing['records']:,.0f} records without a score or a label were left out of "
        f"every figure (95 % interval {low:,} to {high:,}), counted with noise for {cost}, a part "
        "of what was spent."
    )
