"""``tacit evaluate`` without ``--protocol``: a plan chooses protocol and settings."""

from __future__ import annotations

from collections.abc import Mapping

import click

from tacit.cli.options.spelled import Spelled
from tacit.data.categories import scored_classes
from tacit.data.clients import Clients
from tacit.planning.choosing import choose
from tacit.protocol.conversation import Protocol
from tacit.protocol.declarations.trust import Trust, trust_words
from tacit.running.persons import unit_of

trust_option = click.option(
    "--trust",
    type=Spelled(trust_words()),
    metavar=f"[{'|'.join(trust.value for trust in Trust)}]",
    help="Who may see what (`tacit plan --help`). Without --protocol any of these words: by "
    "default secure-sum for up to 1,000 clients, and local for more. With --protocol, one that it "
    "has.",
)


def refuse_without_protocol(options: Mapping[str, object]) -> None:
    """Refuse options that only make sense with a protocol that somebody chose.

    Parameters
    ----------
    options : names with their values; None for those not given. Epsilon is free.
    """
    for name, value in options.items():
        if value is not None and name != "epsilon":
            flag = f"--{name.replace('_', '-')}"
            raise click.UsageError(
                f"{flag} needs --protocol: without it, --epsilon and --trust choose all settings"
            )


def chosen_or_default(
    protocol: Protocol | None,
    clients: Clients,
    split: int | None,
    epsilon: float | None,
    trust: str | None,
    per_person: int | None,
) -> tuple[Protocol, str | None]:
    """The protocol that was named, or one that is chosen now, with the reason.

    Parameters
    ----------
    protocol : None where nobody named one.
    split : to how many clients all records will be dealt out; None for the clients as they are.
    epsilon, trust, per_person : as the options have them.

    Raises
    ------
    ValueError : where nothing is predicted to give an estimate, or epsilon does not fit the trust.
    """
    if protocol is not None:
        return protocol, None
    most = unit_of(clients, per_person)
    names = scored_classes(clients.categories)
    choice = choose(split or clients.count, clients.records, epsilon, trust, most, names)
    return choice.protocol, choice.line
