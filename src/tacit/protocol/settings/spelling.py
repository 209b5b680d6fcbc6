"""Names in any case and with any dashes, and the name that a misspelled one is nearest to."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches


def spelled(word: str, names: Sequence[str]) -> str | None:
    """The name of which a word is a spelling: case, dashes, underscores and spaces do not count.

    None where it is a spelling of none, or of several.

    Examples
    --------
    >>> spelled("Score_Histogram", ("fedauc", "score-histogram"))
    'score-histogram'
    """
    if word in names:
        return word
    same = [name for name in names if _plain(name) == _plain(word)]
    return same[0] if len(same) == 1 else None


def suggestion(word: str, names: Sequence[str]) -> str:
    """The end of a sentence about an unknown name: the name that was probably meant, if any.

    Examples
    --------
    >>> suggestion("fed-auk", ("fedauc", "dpauc"))
    "; did you mean 'fedauc'?"
    """
    by_plain = {_plain(name): name for name in names}
    near = get_close_matches(_plain(word), list(by_plain), n=1)
    return f"; did you mean {by_plain[near[0]]!r}?" if near else ""


def _plain(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())
