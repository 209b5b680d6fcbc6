"""Every strategy of a server over few clients.

One attempt's strategy says of each honest client: which list of keys it is told, whom it is told to
have shared (U2), which pair of disjoint lists (U, D) it is asked to sign, and whether it then gets
the signatures. The search leaves out only strategies that another one matches:

1. *Silence.* A client that receives nothing answers nothing. More answers never take an equation
   from the server, as it need not use them. The silence of a client affects others only through
   signatures, and more signatures never make a client refuse. So the server tells each client
   something that it accepts, where there is any, and hands on all signatures.
2. *Other deliveries.* ``check_delivery`` accepts the shares of one set of owners only.
3. *Colluders.* They hand over all they know and sign every list.
4. *Different lists of keys.* Keys and masks depend on the list, so clients that received different
   ones accept no share of each other and have no mask in common, and sign different digests: the
   view is that of several strategies side by side, each on the clients of one list while the others
   are silent. So one list for all is enough. ``Scope.stories`` may still hold more lists, to check
   this for four clients. On the complete graph, a list without some client allows nothing more than
   the full list with a smaller U2.
5. *Names.* Strategies that a renaming of clients turns into each other find the same; the renaming
   keeps the colluders and, on a ring, the neighbours. The search tries one U2 of each such class.

A further attempt has fresh keys, so it shares no unknowns with others, and what several attempts
determine is spanned by what each of them determines. There is another attempt only if enough
clients gave up the last one. The search tries every way to hand the signatures to some clients
only. If none leaves both a determined sum and enough clients to go on, the attempts before the one
that opens reveal nothing, so many attempts find no more than one. If there is such a way, its sums
are combined with those of every attempt.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations, permutations, product

import numpy as np

from tacit.crypto.secure_sum.graph import Indices
from tacit_studies.secure_sums.clients import HonestClients, Masked, Members
from tacit_studies.secure_sums.setting import Bools, Part, Setting
from tacit_studies.secure_sums.strategy import Attempt, Story
from tacit_studies.secure_sums.view import least_combination, least_sum, sums_of

CHUNK = 1 << 15
"""Number of strategies that are solved at once."""

Statement = tuple[int, Members]
"""The number of a list of keys, and U2; an empty U2 makes the client refuse, and so be silent."""
Sums = frozenset[Members]


@dataclass(frozen=True, eq=False)
class Scope:
    """What is searched.

    Parameters
    ----------
    setting : the clients, who check whose shares they get.
    stories : the lists of advertised keys that clients may be told, closed under renaming.

    Raises
    ------
    ValueError : when the clients do not check whose shares they get.
    """

    setting: Setting
    stories: tuple[Story, ...]

    def __post_init__(self) -> None:
        if Part.DELIVERY in self.setting.without:
            raise ValueError("an exhaustive search needs clients that check deliveries")


@dataclass(eq=False)
class Exhausted:
    """What was searched and found.

    Parameters
    ----------
    assignments : choices of a list of keys and a U2 for every client; renamed ones too.
    classes : the number of classes of these assignments under renaming.
    strategies : assignments together with the lists that clients sign; renamed ones too.
    disclosing : how many of these strategies determine a sum for the server.
    least : the fewest honest vectors in a determined combination; 0 where there is none.
    example : a strategy that determines such a combination in one attempt.
    outcomes : the sums that single attempts determine.
    continued : of these, the sums that are determined although enough clients would join another
        attempt.
    """

    assignments: int = 0
    classes: int = 0
    strategies: int = 0
    disclosing: int = 0
    least: int = 0
    example: Attempt | None = None
    outcomes: set[Sums] = field(default_factory=set)
    continued: set[Sums] = field(default_factory=set)

    def note(self, least: int, example: Attempt | None = None) -> None:
        """Remember the fewest vectors."""
        if least and (not self.least or least < self.least):
            self.least, self.example = least, example or self.example


def exhaust(scope: Scope, until_broken: bool = False) -> Exhausted:
    """Try every strategy, except those that another strategy matches (see the module).

    Parameters
    ----------
    scope : what is searched; a search over five clients takes minutes.
    until_broken : whether to stop at the first strategy that determines fewer vectors than allowed.
    """
    honest, result = HonestClients(scope.setting), Exhausted()
    options = [_options(honest, scope, k) for k in scope.setting.members.tolist()]
    codes, weights = _classes(scope, options)
    result.assignments, result.classes = int(weights.sum()), len(codes)
    search = _Lists(honest, result, scope.setting.allowed if until_broken else 0)
    for code, weight in zip(codes[::-1].tolist(), weights[::-1].tolist(), strict=True):
        announcements = [some[choice] for some, choice in zip(options, code, strict=True)]
        search.try_all(_announcing(scope, announcements), weight)
        if search.is_done:
            return result
    for before, last in product(result.continued, result.outcomes):
        result.note(least_combination(before | last))
    return result


def _options(honest: HonestClients, scope: Scope, k: int) -> list[Statement]:
    """What the server may tell client k before it masks its vector: nothing, or what it accepts."""
    clients = scope.setting.clients
    options: list[Statement] = [(0, frozenset())]
    for number, story in enumerate(scope.stories):
        for size in range(1, clients + 1):
            for announced in map(frozenset, combinations(range(clients), size)):
                owners = frozenset(np.flatnonzero(story.around[k]).tolist()) & announced
                enough = len(owners) + 1 >= scope.setting.threshold
                if enough and honest.accepts_delivery(k, story, announced, owners):
                    options.append((number, announced))
    return options


def _classes(scope: Scope, options: list[list[Statement]]) -> tuple[Indices, Indices]:
    """One assignment of each class, as indices in ``options``, and the size of its class."""
    bases = np.array([len(some) for some in options], dtype=np.int64)
    radices = np.cumprod(np.concatenate([[1], bases[:-1]]))
    codes = np.arange(int(bases.prod()))[:, None] // radices % bases
    least = np.arange(len(codes))
    for name in _names(scope):
        least = np.minimum(least, (_renamed(scope, options, name, codes) * radices).sum(1))
    representatives, weights = np.unique(least, return_counts=True)
    return codes[representatives], weights


def _names(scope: Scope) -> Iterator[tuple[int, ...]]:
    """The renamings of clients that keep the colluders and turn lists of keys into such lists."""
    clients, colluders = scope.setting.clients, scope.setting.colluders
    for name in permutations(range(clients)):
        if {name[k] for k in colluders} == colluders and None not in _images(scope, name):
            yield name


def _images(scope: Scope, name: tuple[int, ...]) -> list[int | None]:
    """Which list each list of keys turns into."""
    known = {
        (frozenset(story.arranged.tolist()), story.around.tobytes()): number
        for number, story in enumerate(scope.stories)
    }
    back = np.argsort(name)
    return [
        known.get(
            (
                frozenset(name[k] for k in story.arranged.tolist()),
                story.around[np.ix_(back, back)].tobytes(),
            )
        )
        for story in scope.stories
    ]


def _renamed(
    scope: Scope, options: list[list[Statement]], name: tuple[int, ...], codes: Indices
) -> Indices:
    images, members = _images(scope, name), scope.setting.members.tolist()
    turned = np.empty_like(codes)
    for index, k in enumerate(members):
        target = members.index(name[k])
        where = {option: choice for choice, option in enumerate(options[target])}
        moved = [
            where[images[number] if announced else 0, frozenset(name[j] for j in announced)]
            for number, announced in options[index]
        ]
        turned[:, target] = np.array(moved)[codes[:, index]]
    return turned


def _announcing(scope: Scope, announcements: list[Statement]) -> Attempt:
    """An attempt up to the masked vectors; its lists are still empty."""
    clients = scope.setting.clients
    story = np.zeros(clients, dtype=np.int64)
    announced = np.zeros((clients, clients), dtype=np.bool_)
    for k, (number, members) in zip(scope.setting.members.tolist(), announcements, strict=True):
        story[k] = number
        announced[k, list(members)] = True
    nothing = np.zeros_like(announced)
    everybody = np.ones(clients, dtype=np.bool_)
    attempt = Attempt(scope.stories, story, announced, nothing, nothing, nothing, everybody)
    return replace(attempt, delivered=attempt.around & announced)


class _Lists:
    """All lists that clients sign after they know with whom they mask."""

    def __init__(self, honest: HonestClients, result: Exhausted, enough: int) -> None:
        self._honest, self._result, self._enough = honest, result, enough
        clients = honest.setting.clients
        states = np.array(list(product(range(3), repeat=clients)), dtype=np.int8)
        self._stayed, self._left = states == 1, states == 2
        self._bits = 1 << np.arange(clients)
        self._accepted: dict[object, Indices] = {}
        self._certificates: dict[tuple[int, int], bool] = {}

    @property
    def is_done(self) -> bool:
        """Whether the search found a combination of fewer vectors than its limit."""
        return 0 < self._result.least < self._enough

    def try_all(self, attempt: Attempt, weight: int) -> None:
        """Try every choice of lists for an assignment that represents ``weight`` assignments."""
        masked = self._honest.mask(attempt)
        choices = [self._choices(attempt, masked, k) for k in range(masked.sent.size)]
        total = int(np.prod([lists.size for lists in choices]))
        self._result.strategies += weight * total
        for start in range(0, total, CHUNK):
            rest = np.arange(start, min(start + CHUNK, total))
            chosen = np.empty((rest.size, len(choices)), dtype=np.int64)
            for k, lists in enumerate(choices):
                rest, index = np.divmod(rest, lists.size)
                chosen[:, k] = lists[index]
            self._solve(attempt, masked, chosen, weight)
            if self.is_done:
                return

    def _choices(self, attempt: Attempt, masked: Masked, k: int) -> Indices:
        """The lists that client k signs, as indices in the table of all; -1 for none."""
        if not masked.sent[k]:
            return np.array([-1])
        story = attempt.stories[attempt.story[k]]
        announced, agreeing = masked.announced[k], self._honest.agreeing(masked, masked.digests[k])
        key = (k, story.transcript, announced, agreeing)
        if key not in self._accepted:
            accepted = [
                index
                for index, (stayed, left) in enumerate(zip(self._stayed, self._left, strict=True))
                if self._honest.accepts_lists(
                    k, story, announced, _members(stayed), _members(left), agreeing
                )
            ]
            self._accepted[key] = np.array(accepted or [-1])
        return self._accepted[key]

    def _solve(self, attempt: Attempt, masked: Masked, chosen: Indices, weight: int) -> None:
        left = self._left[chosen] & (chosen >= 0)[..., None]
        revealed = self._certified(masked, chosen)
        labels = self._honest.readable_sums(masked, left, revealed).labels
        sizes = least_sum(labels)
        disclosing = np.flatnonzero(sizes)
        if not disclosing.size:
            return
        self._result.disclosing += weight * disclosing.size
        self._result.outcomes.update(_outcomes(labels[disclosing]))
        least = disclosing[np.argmin(sizes[disclosing])]
        lists = {"stayed": self._stayed[chosen[least]], "left": left[least]}
        self._result.note(int(sizes[least]), replace(attempt, **lists, revealing=revealed[least]))
        if self.is_done:
            return
        # fewer shares reveal no more, so strategies that revealed nothing are done
        for group in self._may_reveal(masked, revealed[disclosing].any(0)):
            fewer = self._honest.readable_sums(
                masked, left[disclosing], revealed[disclosing] & group
            )
            self._result.continued.update(_outcomes(fewer.labels))

    def _may_reveal(self, masked: Masked, certified: Bools) -> list[Bools]:
        """The largest groups of clients that may reveal while enough others go on to a next sum."""
        setting, groups = self._honest.setting, list[Bools]()
        some = np.flatnonzero(certified).tolist()
        for size in range(len(some), 0, -1):
            for members in combinations(some, size):
                group = np.isin(np.arange(setting.clients), members)
                if any((group <= other).all() for other in groups):
                    continue
                joining = self._honest.joining(~group, masked).sum() + len(setting.colluders)
                if joining >= setting.rule.min_clients:
                    groups.append(group)
        return groups

    def _certified(self, masked: Masked, chosen: Indices) -> Bools:
        """Whose lists enough clients signed, shape (strategies, K)."""
        numbers = {digest: index for index, digest in enumerate(dict.fromkeys(masked.digests))}
        digests = np.array([numbers[digest] for digest in masked.digests])
        same = (chosen[:, :, None] == chosen[:, None, :]) & (digests[:, None] == digests)
        signed = chosen >= 0
        signers = (same & signed[:, None, :]) @ self._bits
        stayed = self._stayed[chosen] @ self._bits
        certified = np.zeros_like(signed)
        for pair in set(zip(stayed[signed].tolist(), signers[signed].tolist(), strict=True)):
            if self._certificate(*pair):
                certified |= signed & (stayed == pair[0]) & (signers == pair[1])
        return certified

    def _certificate(self, stayed: int, signers: int) -> bool:
        if (stayed, signers) not in self._certificates:
            lists, names = _members((stayed & self._bits) > 0), _members((signers & self._bits) > 0)
            self._certificates[stayed, signers] = self._honest.accepts_certificate(lists, names)
        return self._certificates[stayed, signers]


def _outcomes(labels: Indices) -> set[Sums]:
    """The sums that views determine; views without any are left out."""
    some = labels[least_sum(labels) > 0]
    return {frozenset(sums_of(row)) for row in np.unique(some, axis=0)}


def _members(row: Bools) -> Members:
    return frozenset(np.flatnonzero(row).tolist())
