"""A result in words: its numbers as they are read, and what they mean in sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

from tacit.privacy import composition
from tacit.privacy.cost import HIDDEN, Cost, cost_line
from tacit.privacy.shuffling import Shuffled
from tacit.reporting.comparing import Difference
from tacit.results.estimate import Estimate, Interval, bounds_line, decimals, higher_of
from tacit.results.measures.catalogue import label
from tacit.results.saved import reading

LEAST_IN_DIGITS, MOST_IN_DIGITS = 1e-6, 1e7
"""The least size of a threshold that is written without an exponent, and that from which on it has
one."""
EXACT_DIGITS = 200
"""The number of digits in which an end is rounded outwards: enough for any number of a result."""

CERTAIN = 0.9999
"""A statement of higher probability than this is called practically certain."""
NOISE = {
    "system": "exact, from the operating system",
    "simulated": "simulated; it protects no record",
    "none": "none was drawn",
}


KEY = ("calibration_intercept", "calibration_slope", "observed_over_expected", "ici", "brier")
"""Measures that a report shows together with its essential pictures."""


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


def between(bounds: reading.Bounds, digits: int = 4, unknown: str = "not known") -> str:
    """An interval in words, or what stands for one that is not known."""
    return bounds_line(bounds, digits=digits) if all(map(math.isfinite, bounds)) else unknown


def shown_interval(estimate: Estimate, digits: int) -> tuple[str, str]:
    """Both ends of an estimate's interval; a certain one is rounded outwards, to stay certain."""
    low, high = estimate.interval()
    if not estimate.certain:
        return decimal(low, digits), decimal(high, digits)
    unit, exact = Decimal(1).scaleb(-digits), Context(prec=EXACT_DIGITS)
    down = Decimal(repr(low)).quantize(unit, ROUND_FLOOR, exact)
    return str(down), str(Decimal(repr(high)).quantize(unit, ROUND_CEILING, exact))


def cost_text(spent: Mapping[str, Any]) -> str:
    """A cost in words; one that protects nothing is without limit."""
    return cost_line(spent, unlimited="without limit")


def has_essentials(result: reading.Result) -> bool:
    """Whether the result holds measures of a score histogram."""
    return any(name in result.content.get("measures", {}) for name in KEY)


def headline_sentences(result: reading.Result) -> list[str]:
    """What the figure means, and how sure it is."""
    estimate = result.estimate
    if not estimate.given:
        return [
            "The noise left no signal: nothing can be said of this figure. More records, or a "
            "larger epsilon, would."
        ]
    if not result.figure.is_auc:
        return _certainty(result)
    low, high = estimate.interval()
    if low <= 0 and high >= 1:
        held = "holds every AUC there is, from 0 to 1:"
        few = f"The range {held} the thresholds tell too few records apart, and"
        reason = few if estimate.certain else f"The noise is so large that the interval {held}"
        return [f"{reason} this result says nothing about the classifier."]
    share = f"{100 * min(max(estimate.value, 0.0), 1.0):.1f} %"
    meaning = (
        "Of one positive and one negative record drawn at random, the positive one has the higher "
        f"score in about {share} of all cases; a tie counts as half. 50 % is guessing."
    )
    return [meaning, *_certainty(result)]


def _certainty(result: reading.Result) -> list[str]:
    estimate, digits = result.estimate, decimals(result.estimate.interval())
    if not estimate.has_interval:
        return ["How far it is from the exact figure is not known, so no interval is given."]
    if estimate.interval()[0] == estimate.interval()[1]:
        sentences = ["It is the exact figure of these records."]
    else:
        how = "Certainly" if estimate.certain else "With 95 % confidence"
        sentences = [
            f"{how} the exact {result.figure} of these records lies between "
            f"{' and '.join(shown_interval(estimate, digits))}."
        ]
    population = estimate.interval(about="population")
    if all(map(math.isfinite, population)):
        sentences.append(
            "For the population that these records are a sample of, it lies with 95 % confidence "
            f"between {' and '.join(decimal(bound, digits) for bound in population)}."
        )
    return sentences


def privacy_sentences(result: reading.Result) -> list[str]:
    """What the evaluation cost in privacy, and what that means."""
    spent = result.content["spent"]
    if spent["epsilon"] is None:
        return [
            "There is no differential privacy. Anyone who sees what the protocol shows sees it "
            "exactly; the threat model below says what that is."
        ]
    if spent["epsilon"] == 0:
        return ["Nothing more was spent: the answers follow from what clients released before."]
    cost = f"Each client spent at most {cost_text(spent)}."
    sentences = [cost, _meaning_of(spent), _unit_sentence(result)]
    if "protection" in result.content:
        supported = cost_text(result.content["protection"])
        sentences.append(
            f"Clients vanished and took their noise along: what arrived supports only {supported}."
        )
    if "shuffled" in result.content:
        shuffled = Shuffled(**result.content["shuffled"])
        sentences.append(f"Sealed batches: {shuffled.line}.")
    return sentences


def _meaning_of(spent: Mapping[str, Any]) -> str:
    epsilon, delta = float(spent["epsilon"]), float(spent["delta"])
    unit = HIDDEN.get(str(spent["adjacency"]), "any one record's part in it")
    belief = 1 / (1 + math.exp(-min(epsilon, 700.0)))
    sure = "practically certain" if belief > CERTAIN else f"{100 * belief:.1f} % sure"
    chance = f", but for a chance of {delta:g}" if delta else ""
    return (
        f"That keeps deniable {unit}. Somebody who thought it a coin toss before, and sees all "
        f"that a client sent, is at most {sure} afterwards{chance}. An attack has an "
        f"{Cost(epsilon, delta).attacks}."
    )


def _unit_sentence(result: reading.Result) -> str:
    """Whom the epsilon protects: a record, or a person."""
    person = result.content.get("person")
    if person is None:
        return (
            "The unit is one record: a person with several records is protected by as many times "
            "that epsilon. Further evaluations of the same records add to it."
        )
    epsilon = float(result.content["spent"]["epsilon"])
    line = composition.person_line(int(person["records"]), epsilon)
    return f"The unit is {line}. Further evaluations of the same records add to the epsilon."


def sentences_of_records(result: reading.Result) -> list[str]:
    """Who took part, how much was sent, and how many records there are, as far as it is told."""
    content = result.content
    clients, traffic = content["clients"], content["traffic"]
    sent = traffic["bytes_sent_per_client"]
    rounds = "one round" if traffic["rounds"] == 1 else f"{traffic['rounds']} rounds"
    sentences = [
        "One client took part." if clients == 1 else f"{clients:,} clients took part.",
        f"A client sent {sent['median']:,.0f} bytes (median), at most {sent['max']:,}, in "
        f"{rounds}.",
    ]
    positives, negatives = (
        reading.number(content.get(name)) for name in ("positives", "negatives")
    )
    if math.isfinite(positives) and math.isfinite(negatives):
        sentences.append(
            f"About {positives:,.0f} positive and {negatives:,.0f} negative records, as estimated."
        )
    if "missing" in content:
        sentences.append(left_out_sentence(content["missing"]))
    return sentences


def notices_of(document: reading.Result | reading.GroupedResult) -> list[str]:
    """A result's warnings, and what about it must not leave the place it was computed in."""
    content = document.content
    notices = list(map(str, content["warnings"]))
    if "exact" in content:
        notices.append(
            "this report holds the exact figure, which is outside every guarantee: it must not "
            "leave the place it was computed in. Evaluate without --exact for a report to pass on"
        )
    if content.get("missing", {}).get("private") is False:
        notices.append(
            "this report says exactly how many records were left out, which is outside every "
            "guarantee. Evaluate with --count-missing for a number to pass on"
        )
    return [capitalised(text if text.endswith(".") else f"{text}.") for text in notices]


def performance_of(result: reading.Result) -> str:
    """The figures that this very report has, and where."""
    places = {
        "rates": "rates under Choose a threshold",
        "classes": "those of single classes under Classes",
        "groups": "those of subgroups under Private groups",
    }
    listed = [f"the {result.figure} above"]
    listed += ["calibration and net benefit under For a reviewer"] * has_essentials(result)
    others = not has_essentials(result) and further_figures(result.content)
    listed += ["others under Further figures"] * bool(others)
    listed += [place for entry, place in places.items() if result.content.get(entry)]
    return joined(listed)


def joined(names: Sequence[str]) -> str:
    """At least one name in a sentence."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


RATES = (
    ("precision", "Precision", "of the records called positive, how many are"),
    ("recall", "Recall", "of the positives, how many are found"),
    ("f1", "F1", "the harmonic mean of both"),
    ("specificity", "Specificity", "of the negatives, how many are left alone"),
    ("accuracy", "Accuracy", "of all records, how many are called right"),
)
CALIBRATION = {
    "debiased_ece": "Calibration error (ECE), less what noise adds",
    "ece": "Calibration error (ECE), as it is",
    "mce": "Largest calibration error (MCE)",
    "brier": "Brier score",
}


def further_figures(content: Mapping[str, Any]) -> list[tuple[str, Estimate]]:
    """What a result states besides its figure and the measures of a score histogram."""
    entries = {"Average precision": content.get("average_precision")}
    half, middle = content.get("at_half", {}), reading.half_of(content)
    if middle is not None:
        entries |= {f"{title} at {middle:g}": half.get(name) for name, title, _ in RATES}
    made = [(title, reading.estimate_of(entry)) for title, entry in entries.items() if entry]
    calibration, measures = content.get("calibration", {}), content.get("measures", {})
    if not any(name in measures for name in KEY) and not content.get("classes"):
        made += [(label(name), reading.estimate_of(entry)) for name, entry in measures.items()]
    return made + [
        (title, _calibration_figure(calibration, name))
        for name, title in CALIBRATION.items()
        if name in calibration and name not in measures
    ]


def _calibration_figure(calibration: Mapping[str, Any], name: str) -> Estimate:
    """A figure of buckets; of its error only that about the population may be known."""
    value, error = (reading.number(calibration.get(key)) for key in (name, f"{name}_error"))
    around = Estimate(value, error, 0.0, limits=(0.0, 1.0)).interval()
    return Estimate(value, math.nan, error, intervals=(Interval(math.nan, math.nan), around))


def starting_threshold(rates: Mapping[str, Any]) -> int:
    """Where the slider starts: the threshold with the highest F1, or the middle one."""
    known = [(value, -index) for index, value in enumerate(rates["f1"]) if value is not None]
    return -max(known)[1] if known else len(rates["thresholds"]) // 2


def setting_text(value: Any) -> str:
    """A setting's value in a line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {entry}" for key, entry in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def capitalised(text: str) -> str:
    """A text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def difference_sentence(difference: Difference, figure: str) -> str:
    """What a difference means, and about what its interval is."""
    if not difference.known:
        return f"{difference.second} and {difference.first}: the difference is not known."
    interval = difference.estimate.interval()
    digits = decimals(interval)
    higher = "higher" if difference.estimate.value > 0 else "lower"
    verdict = (
        f"{higher} than {difference.first}; the noise alone does not explain that"
        if difference.significant
        else f"not to be told from {difference.first}: the interval holds zero"
    )
    about = "on the same records" if difference.paired else "on the records of each"
    return (
        f"{difference.second} is {verdict}. Its exact {figure} less that of {difference.first} "
        f"{about} is {signed(interval.low, digits)} to {signed(interval.high, digits)} with 95 % "
        "confidence."
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


def left_out_sentence(missing: Mapping[str, Any]) -> str:
    """How many incomplete records were left out of every figure.

    Parameters
    ----------
    missing : the entry of a result.
    """
    if "records" not in missing:
        return (
            "Records without a score or a label were left out of every figure. How many they are "
            "is not in this result: the person who evaluated it could read the number."
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


def named_estimates(
    documents: Sequence[reading.Result | reading.PublicGroup],
) -> list[tuple[str, Estimate]]:
    """The estimates of several results or of groups that have one, with their names."""
    named = (
        (each.label, each) if isinstance(each, reading.Result) else (each.name, each.result)
        for each in documents
    )
    return [(name, result.estimate) for name, result in named if result is not None]


def verdict(compared: reading.ComparedModels) -> str:
    """Which model is better, as far as the intervals tell."""
    estimate = compared.difference.estimate
    names = compared.models[0].label, compared.models[1].label
    here = higher_of(names, estimate.interval())
    if not here:
        return "The interval of the difference holds 0: neither model is shown to be better."
    if higher_of(names, estimate.interval(about="population")):
        return f"{here} has the higher AUC, on these records and in the population."
    return f"{here} has the higher AUC on these records; in the population, neither is shown to."


def sentences_of_groups(grouped: reading.GroupedResult, folded: bool) -> list[str]:
    """How far the groups lie apart, what was spent, and what was left out.

    Parameters
    ----------
    grouped : the groups.
    folded : whether they are too many to show each of them whole.
    """
    sentences, spread = [], grouped.content["spread"]
    if spread is not None:
        sentences.append(
            f"The highest estimate, of {spread['highest']}, and the lowest, of {spread['lowest']}, "
            f"are {decimal(reading.number(spread['value']))} apart; noise makes that too large on "
            "average."
        )
    for entry, about in (("spread", "these records"), ("population_spread", "the population")):
        if grouped.content[entry] is not None:
            apart = between(reading.bounds_of(grouped.content[entry], "interval"))
            ends = f"The highest and the lowest figure of {about} are {apart} apart"
            sentences.append(f"{ends}, with 95 % for all groups together.")
    sentences.append(f"Spent in all: {cost_text(grouped.content['spent'])}.")
    if folded:
        sentences.append("The page shows these groups in this table only.")
    if "missing" in grouped.content:
        sentences.append(left_out_sentence(grouped.content["missing"]))
    return sentences
