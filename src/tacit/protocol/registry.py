"""All protocols by name; a protocol from its name and settings, and its settings as options.

A package registers its protocols by entry points: in the group ``tacit.protocols`` a name and its
class, in the group ``tacit.comparisons`` a protocol's name and the class that compares two models
for it. A class of a running program registers itself by the decorator ``register``.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar, cast

from tacit.protocol import settings as words
from tacit.protocol.conversation import Protocol
from tacit.protocol.settings import changed_settings, known_settings, problem_with

PROTOCOL_GROUP = "tacit.protocols"
COMPARISON_GROUP = "tacit.comparisons"

Kind = TypeVar("Kind", bound=type[Protocol])

_registered: dict[str, type[Protocol]] = {}


class SettingError(ValueError):
    """A setting that a protocol does not have, or needs, or of another type.

    Parameters
    ----------
    name : the setting.
    reason : what is wrong with it.
    missing : whether it was needed and not given.
    holders : other protocols that have it.
    """

    def __init__(
        self, name: str, reason: str, missing: bool = False, holders: Sequence[str] = ()
    ) -> None:
        super().__init__(f"{reason}; {has_it(holders)}" if holders else reason)
        self.name, self.missing, self.holders = name, missing, tuple(holders)


def has_it(holders: Sequence[str]) -> str:
    """A clause that says which protocols have a setting."""
    return f"{', '.join(holders)} {'has' if len(holders) == 1 else 'have'} it"


def register(kind: Kind) -> Kind:
    """Register a protocol's class under its name, for this process; a decorator.

    Defining the class again replaces it, as in a notebook.

    Raises
    ------
    SettingError : for a name that another class has.
    """
    name = kind.name
    current = _registered.get(name)
    sources = [_called(each) for each in _entry_points(PROTOCOL_GROUP).get(name, ())]
    if current is not None and _source(current) != _source(kind):
        sources.append(_source(current))
    if sources:
        raise _taken(name, (*sources, _source(kind)))
    _registered[name] = kind
    return kind


def protocol_names() -> tuple[str, ...]:
    """The names of all registered protocols."""
    return (*sorted(_entry_points(PROTOCOL_GROUP)), *_registered)


def protocol_kinds() -> dict[str, Any]:
    """The class of every registered protocol, by name."""
    return {name: kind_of(name) for name in protocol_names()}


def names_registered_by(package: str) -> tuple[str, ...]:
    """The names that one package registered by entry points, and no other did.

    Examples
    --------
    >>> "dpauc" in names_registered_by("tacit"), names_registered_by("another")
    (True, ())
    """
    packages = {
        name: [None if each.dist is None else each.dist.name for each in entries]
        for name, entries in _entry_points(PROTOCOL_GROUP).items()
    }
    return tuple(name for name, named in packages.items() if named == [package])


def comparison_names() -> tuple[str, ...]:
    """The names of the protocols that can compare two models."""
    return tuple(_entry_points(COMPARISON_GROUP))


def known_name(word: str, names: Sequence[str]) -> str:
    """The registered name of a word, in which case, dashes and underscores do not count.

    Raises
    ------
    SettingError : for an unknown word; the message lists the names and suggests the nearest.

    Examples
    --------
    >>> known_name("FedAUC", protocol_names())
    'fedauc'
    """
    name = words.listed_name(word, names)
    if name is None:
        listed = ", ".join(names)
        raise SettingError(
            "name", f"protocol must be one of {listed}, got {word!r}{words.suggestion(word, names)}"
        )
    return name


def kind_of(name: str) -> Any:
    """The class of a protocol's name, which is imported when it is asked for.

    Parameters
    ----------
    name : in any case, with or without dashes.

    Raises
    ------
    SettingError : for an unknown name, one that two packages registered, or one that is not its
        class's own.

    Examples
    --------
    >>> kind_of("dpauc").__name__
    'DPAUC'
    """
    name = known_name(name, protocol_names())
    if name in _registered:
        return _registered[name]
    kind = _loaded(PROTOCOL_GROUP, name)
    if kind.name != name:
        raise SettingError("name", f"the protocol {name!r} calls itself {kind.name!r}")
    return kind


def comparison_kind_of(name: str) -> Any:
    """The class that compares two models for the protocol of this name.

    Raises
    ------
    SettingError : as for ``kind_of``.
    """
    return _loaded(COMPARISON_GROUP, known_name(name, comparison_names()))


def protocol_of(name: str, settings: Mapping[str, Any]) -> Protocol:
    """A protocol from its name and those of its settings that are not left to their defaults.

    Raises
    ------
    SettingError : for an unknown protocol, a setting that it does not have, that it needs and was
        not given, or of another type.
    ValueError : for a setting outside its range.

    Examples
    --------
    >>> protocol_of("dpauc", {"epsilon": 1.0}).scale
    'probability'
    >>> protocol_of("dpauc", {"epsilon": 1.0, "noise": "laplace"})
    Traceback (most recent call last):
    tacit.protocol.registry.SettingError: dpauc has no setting 'noise'; paired-ustatistic has it
    """
    return with_settings(kind_of(name), name, settings)


def written_kind(name: str) -> Any:
    """The class, of a protocol or a comparison, that a result names; ``object`` for an unknown one.

    A result may be of a protocol that is not installed here.
    """
    try:
        return kind_of(name)
    except SettingError:
        kinds = map(comparison_kind_of, comparison_names())
        return next((kind for kind in kinds if kind.name == name), object)


def check_written(entry: Mapping[str, Any]) -> None:
    """Refuse a result's ``protocol`` entry whose values its settings do not take.

    What is not declared here, by a later version or a protocol that is not installed, passes.

    Raises
    ------
    ValueError : naming the setting, what it takes and the value.

    Examples
    --------
    >>> check_written({"name": "dpauc", "adjacency": "x"})
    Traceback (most recent call last):
    ValueError: adjacency must be one of ('record', 'label', 'replace'), got 'x'
    """
    kind = written_kind(entry["name"])
    for key, known in known_settings(kind).items():
        if key not in entry or known.declared.shown is not None:
            continue
        known.chosen(_typed(kind, key, entry[key]))


def with_settings(kind: Any, name: str, settings: Mapping[str, Any]) -> Protocol:
    """A protocol of this class; ``name`` is what errors call it. As ``protocol_of``."""
    known = known_settings(kind)
    for key in settings:
        if key not in known:
            reason = f"{name} has no setting {key!r}"
            raise SettingError(key, reason, holders=holders_of(key))
    for key, setting in known.items():
        if setting.needed and key not in settings:
            raise SettingError(key, f"{name} needs the setting {key!r}", missing=True)
    values = {key: _typed(kind, key, value) for key, value in settings.items()}
    return cast(Protocol, kind(**values))


def _typed(kind: Any, key: str, value: Any) -> Any:
    """A setting's value, of a type that it takes; a list is read as a tuple."""
    given = tuple(value) if isinstance(value, list) else value
    problem = problem_with(kind, key, given)
    if problem is not None:
        raise SettingError(key, problem)
    return given


def holders_of(key: str) -> tuple[str, ...]:
    """The protocols that have a setting.

    Examples
    --------
    >>> holders_of("allocation")
    ('published-fedauc',)
    """
    return tuple(name for name, kind in protocol_kinds().items() if key in known_settings(kind))


def protocol_for_columns(columns: Collection[str]) -> str:
    """The protocol of whose records' columns these options name most.

    Examples
    --------
    >>> kind_of(protocol_for_columns(["value"])).record_columns
    {'value': 'score'}
    """
    kinds = protocol_kinds()
    return max(kinds, key=lambda name: len({*columns} & kinds[name].record_columns.keys()))


@cache
def _entry_points(group: str) -> Mapping[str, tuple[EntryPoint, ...]]:
    """A group's entry points by name, in the order of their packages; read once a process."""
    named: dict[str, tuple[EntryPoint, ...]] = {}
    for each in entry_points(group=group):
        named[each.name] = (*named.get(each.name, ()), each)
    return named


def _loaded(group: str, name: str) -> Any:
    """The one class that packages registered under a name."""
    entries = _entry_points(group)[name]
    if len(entries) > 1:
        raise _taken(name, map(_called, entries))
    return entries[0].load()


def _taken(name: str, sources: Iterable[str]) -> SettingError:
    return SettingError("name", f"several protocols are called {name!r}: {' and '.join(sources)}")


def _called(entry: EntryPoint) -> str:
    """An entry point with the distribution that it is of."""
    package = "an unknown package" if entry.dist is None else f"{entry.dist.name}"
    return f"{entry.value} of {package}"


def _source(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def options_of(protocol: Protocol, without: Collection[str] = ()) -> str:
    """The options that give this protocol: its name, and settings that do not follow by default.

    Parameters
    ----------
    protocol : with its settings.
    without : the names of settings that are left out.

    Examples
    --------
    >>> options_of(protocol_of("dpauc", {"adjacency": "label", "thresholds": 100, "epsilon": 1.0}))
    '--protocol dpauc --epsilon 1 --adjacency label'
    """
    needed = needed_settings(protocol).items()
    known = known_settings(type(protocol))
    shown = [_option(known[name], value) for name, value in needed if name not in without]
    return " ".join([f"--protocol {protocol.name}", *shown])


def needed_settings(protocol: Protocol) -> Mapping[str, Any]:
    """The settings, epsilon first, without the settings that others or defaults imply.

    Examples
    --------
    >>> dict(needed_settings(protocol_of("fedauc", {"epsilon": 2.0, "trust": "each"})))
    {'epsilon': 2.0}
    """
    known = known_settings(type(protocol))
    values = {name: getattr(protocol, name) for name in sorted(known, key="epsilon".__ne__)}
    needed = {name: value for name, value in values.items() if value is not None}
    for name in [each for each in needed if not known[each].needed]:
        rest = {other: value for other, value in needed.items() if other != name}
        if _gives(rest, protocol):
            needed = rest
    return needed


def _gives(settings: Mapping[str, Any], protocol: Protocol) -> bool:
    """Whether these settings alone give the protocol."""
    try:
        other = protocol_of(protocol.name, settings)
    except ValueError:
        return False
    return not changed_settings(protocol, other)


def _option(setting: words.Setting, value: Any) -> str:
    """One option with its value, as a shell takes it: so many values apart, or a list."""
    flag = setting.name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{flag}" if value else f"--no-{flag}"
    if setting.has_fixed_length:
        return " ".join([f"--{flag}", *map(_text, value)])
    if isinstance(value, list | tuple):
        return f"--{flag} {shlex.quote(','.join(map(_text, value)))}"
    return f"--{flag} {shlex.quote(_text(value))}"


def _text(value: Any) -> str:
    """A number without digits that say nothing, and any other value as it is."""
    is_whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if is_whole else str(value)
