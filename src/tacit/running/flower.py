"""Flower carries a run's messages: a ServerApp that coordinates, a ClientApp that answers.

``server`` and ``client`` are components of a Flower app: name them in its ``pyproject.toml`` as
``tacit.running.flower:server`` and ``tacit.running.flower:client``, with others or alone. The
ServerApp reads three values of the run's configuration, all of them paths on its own machine:
``plan``, ``identity`` (the coordinator's key file) and ``result`` (where it writes the result).
The ClientApp reads one value of its node's configuration: ``party``, the path of the party's file.

Two kinds of messages travel. ``query.hello`` asks a node which party it is, of which agreement.
``query.letter`` brings it one signed message and takes back one. A first message whose answer costs
nothing travels with the former, to nodes of which the coordinator knows whose they are: that saves
a round. Flower authenticates nodes and encrypts the way to its server, which can read messages and
lose them; messages are signed end to end besides, so that a relay can neither change nor make one.
What comes from the network is never unpickled or evaluated.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from tacit import files
from tacit.crypto.identities import is_signed
from tacit.results.saved.integrity import with_fingerprint
from tacit.results.text import escaped
from tacit.running.deployment.flower_programs.holding import wait_after
from tacit.running.session.coordinator import Coordinator, LostPartyError, RunError, concluded
from tacit.running.session.messages import (
    MARK_BYTES,
    MARK_POSITION,
    MAX_BYTES,
    VERSION,
    SignedMessageError,
)
from tacit.running.session.plan_file import Plan
from tacit.running.session.service import PartyDesk, read_identity
from tacit.running.speaking import LOG_PREFIX, Speaker, printable, tell_owner

try:
    from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, RecordDict
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid, ServerApp
    from flwr.supercore.inflatable.inflatable_utils import pull_objects
except ImportError:
    raise ImportError(
        "running a federation needs flwr; install it with: pip install 'tacit[federation]'"
    ) from None

MAX_WHOLE_BYTES = 2**20
"""Largest message that travels as one value."""
HELLO, MESSAGE = "query.hello", "query.letter"
SAID, BYTES = "said", "bytes"

MAX_POLL_SECONDS = 0.5
"""Longest time between two looks for replies, or for nodes."""

NONCE_BYTES = 16
NOWHERE = -1
"""The place of a node that does not say who it is."""
Printer = Callable[[str], None]


Opening = tuple[Coordinator, Mapping[int, bytes]]
"""A run and its first messages by party, sent before it is known who takes part."""


class Nodes:
    """The parties' nodes, reached through Flower.

    Parameters
    ----------
    grid : Flower's connection to all nodes.
    plan : who is expected.
    tell : takes a line about each round.
    names : what the coordinator calls a node, by Flower's number; empty where no one knows.
    """

    def __init__(
        self, grid: Any, plan: Plan, tell: Printer, names: Mapping[int, str] | None = None
    ) -> None:
        self._grid, self._plan, self._tell = grid, plan, tell
        self._names = names or {}
        self._place_of = {party.name: place for place, party in enumerate(plan.parties)}
        self._agreement = plan.agreement()
        self._digest, self._nonce = self._agreement.digest, os.urandom(NONCE_BYTES)
        self.node_of: dict[int, int] = {}
        self.received: dict[int, int] = {}  # the bytes that each party sent

    def find(self, opening: Opening | None = None) -> tuple[int, ...]:
        """Ask all nodes who they are, until every party has come or the deadline has passed.

        Parameters
        ----------
        opening : what nodes are asked besides, where the coordinator knows whose they are.

        Raises
        ------
        RunError : when fewer came than the plan needs.
        """
        ends = time.monotonic() + self._plan.deadline
        greeted: set[int] = set()
        since = time.monotonic()
        speaker = Speaker(self._tell, since)
        while len(self.node_of) < len(self._plan.parties) and time.monotonic() < ends:
            new = set(self._grid.get_node_ids()) - greeted
            if not new:
                speaker.wait(time.monotonic(), lambda: self._waiting(self._absent(), ends))
                time.sleep(wait_after(time.monotonic() - since, MAX_POLL_SECONDS))
                continue
            left = min(ends - time.monotonic(), self._attempt)
            greeted |= self._greet(new, max(left, 1.0), speaker, opening)
        if len(self.node_of) < self._plan.min_clients:
            raise RunError(
                f"{self._plan.min_clients} parties are needed, and {len(self.node_of)} came within "
                f"{self._plan.deadline:g} seconds; missing: {', '.join(self._absent())}"
            )
        return tuple(sorted(self.node_of))

    def _absent(self) -> list[str]:
        """The names of the parties that have not come."""
        places = range(len(self._plan.parties))
        return [self._name(place) for place in places if place not in self.node_of]

    def _waiting(self, names: Iterable[str], ends: float) -> str:
        left = max(ends - time.monotonic(), 0)
        return f"waiting for {', '.join(names)}, {left:.0f} s left"

    def _greet(
        self, nodes: Set[int], timeout: float, speaker: Speaker, opening: Opening | None
    ) -> set[int]:
        """Greet nodes, and give those that answered; a greeting that was lost is sent again."""
        ends, answered = time.monotonic() + timeout, set[int]()
        messages = [self._message(node, HELLO, self._hello(node, opening)) for node in nodes]

        for reply in self._exchange(
            messages, timeout, speaker, lambda: self._waiting(self._absent(), ends)
        ):
            node = reply.metadata.src_node_id
            if node not in nodes:  # the server's own word that parts of a reply were lost
                continue
            answered.add(node)
            words = dict(reply.content.get(SAID, {})) if reply.has_content() else {}
            problem = self._problem(words)
            if problem is None:
                place = int(words["place"])
                self.node_of[place] = node
                self._tell(f"{self._name(place)} is there")
                if opening is not None and BYTES in reply.content:
                    self._take_one(opening[0], place, reply)
            else:
                self._tell(f"{self._names.get(node, 'a node')} does not take part: {problem}")
        return answered

    def _hello(self, node: int, opening: Opening | None) -> Any:
        """The greeting of a node, with its party's first message where there is one."""
        words = {"version": VERSION, "digest": self._digest, "nonce": self._nonce}
        hello = RecordDict({SAID: ConfigRecord(words)})
        place = self._place_of.get(self._names.get(node, ""), NOWHERE)
        if opening is not None and place in opening[1]:
            hello[BYTES] = enclosed(opening[1][place])[BYTES]
        return hello

    def _problem(self, said: Mapping[str, Any]) -> str | None:
        """Why a node cannot take part."""
        if said.get("version") != VERSION:
            return (
                f"it speaks version {said.get('version')!r:.20} of messages, and this is version "
                f"{VERSION}: install the same tacit on all sides"
            )
        if said.get("place") == NOWHERE:
            return "it is not ready, or agreed to another plan; its own terminal says which"
        if said.get("digest") != self._digest:
            return "it agreed to another plan"
        index = said.get("place")
        if not isinstance(index, int) or not 0 <= index < len(self._plan.parties):
            return "it names no party of the plan"
        key, signed = self._agreement.parties[index], greeting(self._digest, self._nonce)
        if not is_signed(key, signed, said.get("signature")):
            return "its greeting is not signed by the party that it names"
        return None if index not in self.node_of else "its party is there already"

    def deliver(self, coordinator: Coordinator, messages: dict[int, bytes]) -> None:
        """One round: the messages out, the replies in, what went unanswered again."""
        started = time.monotonic()
        speaker = Speaker(self._tell, started)
        ends = started + self._plan.deadline

        def unanswered() -> str:
            names = map(self._name, coordinator.waiting)
            return f"{coordinator.place}: {self._waiting(names, ends)}"

        again: list[str] = []
        for attempt in range(1 + self._plan.retries):
            waiting = [index for index in coordinator.waiting if index in self.node_of]
            if not waiting:
                break
            again += map(self._name, waiting if attempt else ())
            going = [
                self._message(self.node_of[index], MESSAGE, enclosed(messages[index]))
                for index in waiting
            ]
            replies = self._exchange(going, self._attempt, speaker, unanswered)
            self._take(coordinator, replies)
        silent = coordinator.waiting
        answered = len(messages) - len(silent)
        sent = sum(len(message) for message in messages.values())
        missing = f"; asked again: {', '.join(again)}" if again else ""
        missing += f"; no response: {', '.join(map(self._name, silent))}" if silent else ""
        self._tell(
            f"{coordinator.place}: {answered} of {len(messages)} parties answered in "
            f"{time.monotonic() - started:.1f} s, {sent:,} bytes down, "
            f"{sum(self.received.values()):,} up so far{missing}"
        )

    def _exchange(
        self, messages: Iterable[Any], seconds: float, speaker: Speaker, words: Callable[[], str]
    ) -> Iterator[Any]:
        """Send messages and give replies as they come, until all have or the time is over.

        A reply whose parts have not come by then, as its node lost the connection, is as good as
        none: Flower waits hours for them.

        Flower's own ``send_and_receive`` looks for replies every three seconds. This looks more
        often; a server of this package answers a look when a reply is there, after a second at the
        latest, and the next look follows at once.
        """
        pull_objects.__kwdefaults__.update(max_time=seconds, backoff_cap=MAX_POLL_SECONDS)
        ends, waiting = time.monotonic() + seconds, set(self._grid.push_messages(messages))
        since = time.monotonic()
        while waiting:
            started = time.monotonic()
            for reply in self._grid.pull_messages(waiting):
                waiting.discard(reply.metadata.reply_to_message_id)
                since = time.monotonic()
                yield reply
            now = time.monotonic()
            if not waiting or now >= ends:
                break
            speaker.wait(now, words)
            next_poll = started + wait_after(now - since, MAX_POLL_SECONDS)
            time.sleep(max(min(next_poll, ends) - now, 0.0))

    def _take(self, coordinator: Coordinator, replies: Iterable[Any]) -> None:
        owners = {node: index for index, node in self.node_of.items()}
        for reply in replies:
            index = owners.get(reply.metadata.src_node_id)
            if index is None:
                self._tell("a reply came from a node that is no party")
            else:
                self._take_one(coordinator, index, reply)

    def _take_one(self, coordinator: Coordinator, index: int, reply: Any) -> None:
        try:
            message = message_in(reply)
            self.received[index] = self.received.get(index, 0) + len(message)
            coordinator.receive(index, message)
        except SignedMessageError as error:
            self._tell(f"{self._name(index)}: {error}")

    def _message(self, node: int, kind: str, content: Any) -> Any:
        lifetime = self._plan.deadline * 2
        return Message(content, dst_node_id=node, message_type=kind, ttl=lifetime)

    @property
    def _attempt(self) -> float:
        """Seconds after which a message that went unanswered is sent again."""
        return self._plan.deadline / (1 + self._plan.retries)

    def _name(self, index: int) -> str:
        return self._plan.parties[index].name


def conduct(
    grid: Any, plan: Plan, identity: Any, tell: Printer, node_names: Mapping[int, str] | None = None
) -> tuple[Coordinator, dict[int, int]]:
    """A whole run over Flower, round after round, and the bytes that each party sent in it.

    Parameters
    ----------
    grid : Flower's connection to all nodes.
    plan : what is run.
    identity : the coordinator's signing key.
    tell : takes a line about each step.
    node_names : what the coordinator calls nodes, by Flower's number.

    Raises
    ------
    RunError : for a run that ends without a result.
    """
    nodes = Nodes(grid, plan, tell, node_names)
    party_names = [party.name for party in plan.parties]
    restarts = plan.on_loss == "restart"

    def begun(active: Sequence[int] | None) -> tuple[Coordinator, dict[int, bytes]]:
        made = Coordinator(plan.agreement(), identity, active, restarts, names=party_names)
        return made, made.open()

    coordinator, messages = begun(None)
    if coordinator.opens_early:
        nodes.find((coordinator, messages))
    else:
        coordinator, messages = begun(nodes.find())
    while True:
        try:
            while messages:
                nodes.deliver(coordinator, messages)
                messages = coordinator.close()
            return coordinator, nodes.received
        except LostPartyError as error:
            following, free = coordinator.without(error), coordinator.begins_again
            costs = "which costs nothing so far" if free else "and costs its epsilon again"
            tell(f"{error}; the run begins again without it, {costs}")
            coordinator, messages = following, following.open()


def greeting(digest: bytes, nonce: bytes) -> bytes:
    """What a party signs to take its seat."""
    return b"tacit greeting 1" + digest + nonce


server = ServerApp()
client = ClientApp()


@server.main()
def main(grid: Grid, context: Context) -> None:
    """Coordinate one run, and write its result."""
    from tacit.running.deployment.server import ROWS_SUFFIX  # noqa: PLC0415 -- nodes have no use for it

    config = context.run_config
    plan = Plan.read(str(config["plan"]))
    identity = read_identity(Path(str(config["identity"])))

    def tell(line: str) -> None:
        print(f"{LOG_PREFIX}{escaped(line)}", flush=True)

    coordinator, received = conduct(grid, plan, identity, tell, _node_names(config))
    result = concluded(plan, coordinator, received)
    path = Path(str(config["result"]))
    if config.get("ticket"):  # `tacit run` waits for it
        files.write_public(path.with_suffix(ROWS_SUFFIX), _json({"rows": result.to_rows()}))
    files.write_public(path, _json(with_fingerprint(result.to_dict())))
    tell("the result is written")


def _json(content: Mapping[str, Any]) -> bytes:
    return f"{json.dumps(content, indent=2, allow_nan=False)}\n".encode()


def _node_names(config: Mapping[str, Any]) -> dict[int, str]:
    """What the coordinator's folder calls the nodes that may connect, where it knows."""
    from tacit.running.deployment.server import Coordinator as Centre  # noqa: PLC0415 -- as above

    known = Centre.of(str(config["plan"])).registered()
    return {int(node["node"]): name for name, node in known.items()}


@client.query("hello")
def hello(message: Message, context: Context) -> Message:
    """Say which party this node is, and what it agreed to; nothing of the records is said.

    A first message that came with the greeting is answered as any other is.
    """
    try:
        words = dict(message.content[SAID])
        # a number in their place would be so many bytes
        digest, nonce = (bytes(memoryview(words[name])) for name in ("digest", "nonce"))
        desk = PartyDesk.open(str(context.node_config["party"]), digest[:MARK_BYTES])
        desk.set_limit()
    except Exception as error:  # Flower would send its text to the coordinator
        _refusal(error)
        return said(message, version=VERSION, place=NOWHERE, digest=b"")
    agreed = desk.plan.agreement().digest
    signature = desk.identity.sign(greeting(agreed, nonce))
    reply = said(message, version=VERSION, place=desk.index, digest=agreed, signature=signature)
    if BYTES in message.content:
        first = answer(message, context).content
        if BYTES in first:  # what it refuses here it refuses again when it is asked alone
            reply.content[BYTES] = first[BYTES]
    return reply


@client.query("letter")
def answer(message: Message, context: Context) -> Message:
    """Answer one message. What it costs is in the party's ledger before the reply leaves."""
    try:
        request = message_in(message)
        desk = PartyDesk.open(str(context.node_config["party"]), request[MARK_POSITION])
        return Message(enclosed(desk.answer(request)), reply_to=message)
    except Exception as error:  # Flower would send its text to the coordinator
        return said(message, refused=_refusal(error))


def _refusal(error: Exception) -> str:
    """The words for others about an error, whose text the party's owner alone reads."""
    if isinstance(error, SignedMessageError):
        tell_owner(f"a message was refused: {error}")
        return "it does not accept the message"
    if isinstance(error, ValueError | OSError | KeyError):
        tell_owner(f"this party is not ready: {error}")
        return "it is not ready"
    tell_owner(f"this party failed: {type(error).__name__}: {error}")
    return "it failed, and its own log says why"


def enclosed(message: bytes) -> Any:
    """A message as the content of a Flower message: one value, or in parts where it is large.

    Flower sends every nested object in a separate request: an array and its parts take two more.
    """
    if len(message) <= MAX_WHOLE_BYTES:
        return RecordDict({BYTES: ConfigRecord({BYTES: message})})
    buffer = Array(dtype="uint8", shape=(len(message),), stype="tacit.letter", data=message)
    return RecordDict({BYTES: ArrayRecord({BYTES: buffer})})


def message_in(message: Any) -> bytes:
    """The message in a Flower message.

    Raises
    ------
    SignedMessageError : for a message without one, with what the sender said instead.
    """
    if not message.has_content():
        raise SignedMessageError(f"its node failed: {printable(str(message.error.reason))}")
    content = message.content
    if SAID in content and BYTES not in content:
        refused = str(dict(content[SAID]).get("refused", ""))
        raise SignedMessageError(f"it did not answer: {printable(refused)}")
    try:
        value = content[BYTES][BYTES]
        data = value if isinstance(value, bytes) else value.data
    except (KeyError, TypeError, AttributeError):
        raise SignedMessageError("this Flower message holds no message of a session") from None
    if not isinstance(data, bytes) or len(data) > MAX_BYTES:
        raise SignedMessageError(f"a message has at most {MAX_BYTES} bytes")
    return data


def said(message: Any, **values: Any) -> Any:
    """A reply of named values."""
    return Message(RecordDict({SAID: ConfigRecord(values)}), reply_to=message)
