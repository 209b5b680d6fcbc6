"""Labels from the words that files write for them."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.data.files.form import FileForm, canonical
from tacit.data.files.remedies import LIKELY_POSITIVE, MISSING_WORDS

NO_LABEL = -1
"""Instead of a label, for a word that is none."""
MAX_WORDS = 1000
"""Labels have two values; a column of more values than this holds something else."""

_USUAL = {"0": 0, "1": 1, "-0": 0, "false": 0, "true": 1}


def usual_labels(values: Sequence[object]) -> list[int]:
    """The labels of different values: 0 and 1, true and false.

    Parameters
    ----------
    values : different values of a column.

    Examples
    --------
    >>> usual_labels(["1", " TRUE", 0.0, "yes"])
    [1, 1, 0, -1]
    """
    return [_USUAL.get(canonical(value), NO_LABEL) for value in values]


def labels_by_word(
    values: Sequence[object], form: FileForm, negative: str | None
) -> tuple[list[int], str | None]:
    """The labels of different values by the words that mean 1, and the one word that means 0.

    Parameters
    ----------
    values : different values of a column, in the order of their first rows.
    form : its words mean 1.
    negative : the word that means 0 so far; None where there was none.

    Examples
    --------
    >>> labels_by_word(["No", "yes", "no", "unknown"], FileForm(("yes",)), None)
    ([0, 1, 0, -1], 'no')
    """
    labels = []
    for word in map(canonical, values):
        if word in form.words:
            labels.append(1)
            continue
        negative = word if negative is None else negative
        labels.append(0 if word == negative else NO_LABEL)
    return labels, negative


def label_requirement(
    values: Sequence[object], form: FileForm, negative: str | None
) -> tuple[str, str]:
    """What labels must be, and the remedy, for a refusal.

    Parameters
    ----------
    values : different values of the column.
    form : its words mean 1.
    negative : the word that means 0 so far.
    """
    if form.positive:
        words = " or ".join(map(repr, form.positive))
        return f"labels must be {words} or one other word, here {negative!r}", ""
    different = {canonical(value): str(value).strip() for value in values}
    if not _are_two_words(set(different)):
        return "labels must be 0 or 1", ""
    positive = next((different[word] for word in LIKELY_POSITIVE if word in different), None)
    word = positive or f"one of {' and '.join(map(repr, different.values()))}"
    remedy = f"; name the word that means 1: --positive {word}, in Python FileForm(positive=(...,))"
    return "labels must be 0 or 1", remedy


def _are_two_words(words: set[str]) -> bool:
    """Whether two values are labels in other words, and not 0 or 1 with a mistake beside it."""
    return words in ({"1", "2"}, {"1", "-1"}) or (
        len(words) == 2
        and words.isdisjoint(_USUAL)
        and words.isdisjoint(MISSING_WORDS)
        and not any(map(_is_number, words))
    )


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
