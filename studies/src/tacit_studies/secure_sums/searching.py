"""A search of strategies over many clients: random ones, and greedy ones that approach a target.

A greedy search takes some honest clients as targets. It counts the shares that the server lacks to
open a sum of their vectors: shares of their seeds, and of the keys of their partners outside. It
adds lies one by one, and keeps a lie if the server then lacks no more shares than before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tacit.crypto.secure_sum.graph import Indices
from tacit_studies.secure_sums.clients import Answers, HonestClients
from tacit_studies.secure_sums.lies import Liar
from tacit_studies.secure_sums.setting import Bools, Setting
from tacit_studies.secure_sums.strategy import Attempt, Story, truthful
from tacit_studies.secure_sums.view import least_combination, sums_of

Members = frozenset[int]
STORIES = 4
"""Number of lists of all clients' keys in one search; their rings are different."""
BATCH = 200
"""Largest number of random strategies before a greedy search; fewer if greedy ones are short."""
PATIENCE = 300
"""Number of lies in a row without progress after which a greedy search starts again."""
DETOURS = 0.05
"""Probability of keeping a lie that makes the server lack one share more, to leave dead ends."""


@dataclass(eq=False)
class Searched:
    """What was searched and found.

    Parameters
    ----------
    strategies : how many were tried.
    refusals : of these, those in which an honest client that was asked gave no shares.
    disclosing : of these, those that determine a sum for the server.
    least : the fewest honest vectors in a determined combination; 0 where there is none.
    example : a strategy that determines such a combination.
    """

    strategies: int = 0
    refusals: int = 0
    disclosing: int = 0
    least: int = 0
    example: tuple[Attempt, ...] = ()

    def note(self, least: int, refused: bool, example: tuple[Attempt, ...]) -> None:
        """Count one strategy."""
        self.strategies += 1
        self.refusals += refused
        self.disclosing += least > 0
        if least and (not self.least or least < self.least):
            self.least, self.example = least, example

    def is_broken(self, setting: Setting) -> bool:
        """Whether a strategy determined a combination of fewer vectors than allowed."""
        return 0 < self.least < setting.allowed


def search(
    setting: Setting,
    strategies: int,
    seed: int,
    until_broken: bool = False,
    starts: Sequence[Attempt] = (),
) -> Searched:
    """Half random strategies, half greedy ones.

    Parameters
    ----------
    setting : the clients.
    strategies : how many are tried.
    seed : the seed of the search's choices.
    until_broken : whether to stop at the first strategy that determines fewer vectors than allowed.
    starts : attempts with which greedy searches begin, besides those of an honest server.
    """
    rng, result = np.random.default_rng(seed), Searched()
    pool = _pool(setting, rng)
    climbed = 0
    while result.strategies < strategies and not (until_broken and result.is_broken(setting)):
        honest, before = HonestClients(setting), result.strategies
        if 2 * climbed >= before:
            for _ in range(min(BATCH, strategies - before)):
                _try_random(honest, pool, rng, result)
        else:
            start = _start(setting, pool, rng, starts)
            _climb(honest, start, rng, result, strategies - before)
            climbed += result.strategies - before
    return result


def determined(honest: HonestClients, attempts: Sequence[Attempt]) -> tuple[int, bool]:
    """The fewest honest vectors in a combination that these attempts determine, 0 for none, and
    whether an honest client that was asked gave no shares.

    A client takes part in the next attempt when enough clients gave up the last one. Every client
    that never revealed a share gives it up.
    """
    joining, ended = honest.setting.honest, honest.setting.honest
    sums: set[Members] = set()
    refused = False
    for number, attempt in enumerate(attempts):
        answers = honest.answer(attempt, joining, number)
        sums |= set(sums_of(answers.labels))
        refused |= _refuses(honest.setting, attempt, answers)
        ended = ended & ~answers.revealed
        if number + 1 < len(attempts):
            joining = honest.joining(ended, answers.masked)
    return _least(sums, honest.setting.allowed), refused


def lacking(setting: Setting, answers: Answers, targets: Indices) -> int:
    """How many shares the server lacks of a sum of the targets' vectors."""
    masked, threshold = answers.masked, setting.threshold
    inside = np.isin(np.arange(setting.clients), targets)
    seeds = np.maximum(threshold - answers.seed_shares[targets], 0)
    seeds[~masked.sent[targets]] = 2 * threshold
    keys = np.maximum(threshold - answers.key_shares, 0) * setting.honest
    closed = masked.partners & (keys > 0)
    outside = (closed[targets].any(0) & ~inside) * keys
    onesided = (closed & ~masked.partners.T)[np.ix_(targets, targets)].sum() * threshold
    return int(seeds.sum() + outside.sum() + onesided)


def _least(sums: set[Members], allowed: int) -> int:
    """Sums of fewer vectors than allowed are reported unchanged; others are combined first."""
    least = min(map(len, sums), default=0)
    return least if least < allowed else min(least, least_combination(sums))


def _pool(setting: Setting, rng: np.random.Generator) -> list[Story]:
    """Lists of everybody's keys, and lists without some clients."""
    clients, min_clients = setting.clients, setting.rule.min_clients
    numbers = rng.integers(2**62, size=2 * STORIES).tolist()
    full = [Story.of(setting, range(clients), number) for number in numbers[:STORIES]]
    sizes = rng.integers(min_clients, clients + 1, size=STORIES)
    some = [
        Story.of(setting, rng.choice(clients, size, replace=False).tolist(), number)
        for size, number in zip(sizes, numbers[STORIES:], strict=True)
    ]
    return [*full, *some]


def _try_random(
    honest: HonestClients, pool: list[Story], rng: np.random.Generator, result: Searched
) -> None:
    attempts = tuple(
        _random(honest.setting, pool, rng) for _ in range(rng.choice((1, 2, 3), p=(0.6, 0.3, 0.1)))
    )
    result.note(*determined(honest, attempts), attempts)


def _random(setting: Setting, pool: list[Story], rng: np.random.Generator) -> Attempt:
    """An honest server's attempt, mostly with some leavers, and up to three lies."""
    attempt = _truthful(setting, pool, rng)
    targets = _targets(setting, attempt, rng)
    if rng.random() < 0.15:
        attempt = _two_lists(attempt, pool, rng)
    if rng.random() < 0.3:
        attempt = replace(attempt, revealing=rng.random(setting.clients) < rng.random())
    liar = Liar(setting, rng, targets)
    for _ in range(rng.integers(0, 4)):
        attempt = liar.changed(attempt)
    return attempt


def _truthful(setting: Setting, pool: list[Story], rng: np.random.Generator) -> Attempt:
    """Leavers at random, or in two runs of the ring."""
    story = pool[rng.integers(STORIES)] if rng.random() < 0.9 else pool[rng.integers(len(pool))]
    members = story.arranged
    most = max(members.size - setting.rule.min_clients, 0)
    count = int(rng.integers(most + 1)) if rng.random() < 0.6 else 0
    if rng.random() < 0.5:
        return truthful(story, rng.choice(members, count, replace=False).tolist())
    first, second = rng.integers(members.size, size=2)
    runs = [first + np.arange(count // 2), second + np.arange(count - count // 2)]
    return truthful(story, members[np.concatenate(runs) % members.size].tolist())


def _two_lists(attempt: Attempt, pool: list[Story], rng: np.random.Generator) -> Attempt:
    """Some clients get another list of keys, and hear that the clients on their list shared."""
    stories = (attempt.stories[0], pool[rng.integers(len(pool))])
    story = (rng.random(attempt.story.size) < rng.random()).astype(np.int64)
    mixed = replace(attempt, stories=stories, story=story)
    rows = np.stack([np.isin(np.arange(story.size), keys.arranged) for keys in stories])[story]
    if rng.random() < 0.5:
        rows = rows & (story[:, None] == story)
    left = attempt.left & rows
    return replace(
        mixed, announced=rows, delivered=mixed.around & rows, left=left, stayed=rows & ~left
    )


def _targets(setting: Setting, attempt: Attempt, rng: np.random.Generator) -> Indices:
    """Fewer honest clients than allowed, at random or side by side on the ring."""
    arranged = attempt.stories[0].arranged
    honest = arranged[setting.honest[arranged]]
    size = int(rng.integers(1, max(min(setting.allowed, honest.size), 2)))
    if rng.random() < 0.5:
        return rng.choice(honest, size, replace=False)
    return honest[(rng.integers(honest.size) + np.arange(size)) % honest.size]


def _start(
    setting: Setting, pool: list[Story], rng: np.random.Generator, starts: Sequence[Attempt]
) -> Attempt:
    if starts and rng.random() < 0.5:
        return starts[rng.integers(len(starts))]
    return _truthful(setting, pool, rng)


def _climb(
    honest: HonestClients,
    attempt: Attempt,
    rng: np.random.Generator,
    result: Searched,
    steps: int,
) -> None:
    """One greedy search; it ends early when it has opened a sum of fewer vectors than allowed."""
    setting = honest.setting
    targets = _targets(setting, attempt, rng)
    liar, nearest = Liar(setting, rng, targets, openly=rng.random() < 0.5), attempt
    best, waited = (np.inf, 0), 0
    while steps > 0 and waited < PATIENCE:
        answers = honest.answer(attempt)
        least = _least(set(sums_of(answers.labels)), setting.allowed)
        result.note(least, _refuses(setting, attempt, answers), (attempt,))
        if 0 < least < setting.allowed:
            return
        lacks = (lacking(setting, answers, targets), _lies(setting, attempt))
        waited = 0 if lacks[0] < best[0] else waited + 1
        if lacks <= best or (lacks[0] <= best[0] + 1 and rng.random() < DETOURS):
            best, nearest = lacks, attempt
        attempt, steps = liar.changed(nearest), steps - 1
        if rng.random() < 0.3:
            attempt = liar.changed(attempt)


def _lies(setting: Setting, attempt: Attempt) -> int:
    """The number of statements that a server without leavers would not make. With fewer of them,
    there is more room for lies that help."""
    claims = attempt.left | (attempt.around & ~attempt.delivered)
    return int(claims[setting.honest].sum() + (~attempt.revealing[setting.honest]).sum())


def _refuses(setting: Setting, attempt: Attempt, answers: Answers) -> bool:
    silent: Bools = setting.honest & attempt.revealing & ~answers.revealed
    return bool(silent.any())
