"""Imports of packages that not every installation has."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def extra(module: str, need: str, package: str) -> Any:
    """A module, imported where it is used.

    Parameters
    ----------
    module : its full name.
    need : what needs it, as a sentence begins.
    package : what ``pip`` installs for it.

    Raises
    ------
    ImportError : with the install command, when it is not installed.

    Examples
    --------
    >>> extra("no_such_module", "pictures need ink", "'tacit[ink]'")
    Traceback (most recent call last):
    ...
    ImportError: pictures need ink; install it with: pip install 'tacit[ink]'
    """
    try:
        return import_module(module)
    except ImportError:
        raise ImportError(f"{need}; install it with: pip install {package}") from None


def matplotlib_figure() -> Any:
    """The module of matplotlib's figures, which need no screen.

    Raises
    ------
    ImportError : with the install command, when matplotlib is not installed.
    """
    return extra("matplotlib.figure", "pictures need matplotlib", "'tacit[plot]'")
