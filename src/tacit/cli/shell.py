"""The shell's side of the command: help, one-sentence errors, prompt interrupts, printing, files.

Files that a command writes are checked before anything is spent, and written whole.

Progress on a terminal: how many records are done, how many a second, and how long it takes.

``--json [FILE]``, in every command: JSON instead of the text, or in FILE in addition to the text.
The name of FILE must end in ``.json``: in ``--json north.csv`` the file is one of records, which
nothing may write over.

``--metrics`` and ``--log-format``: what programs that go on running tell who operates them.
"""

from __future__ import annotations

import errno
import inspect
import io
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

import click
from click.exceptions import Exit

from tacit import operating
from tacit.extras import matplotlib_figure
from tacit.protocol import mpc
from tacit.protocol.settings import suggestion
from tacit.results.text import escaped

FAILED, NO_SIGNAL, INTERRUPTED = 2, 3, 130
"""Exit statuses."""
STDERR = 2
"""The file descriptor of standard error."""
HELP_NAMES = ["-h", "--help"]
EXAMPLES = "\n\nExamples:\n"
"""What begins the part of a command's docstring that the help shows after the options."""
VERBATIM = "\b\n"
"""Before a paragraph whose lines are kept as they are: click's own mark."""


class Tacit(click.Group):
    """Commands whose every error is one sentence on standard error, and never a traceback."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Register a command, and prepare its help."""
        prepare_help(cmd)
        super().add_command(cmd, name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments name; of an unknown one the nearest is told."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            meant = suggestion(args[0], self.list_commands(ctx))
            raise click.UsageError(f"there is no command {args[0]!r}{meant or ': see --help'}", ctx)
        return super().resolve_command(ctx, args)

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run as click does, with errors in this command's own form."""
        run: Any = super().main
        if not standalone_mode:
            return run(*args, standalone_mode=False, **extra)
        try:
            code = run(*args, standalone_mode=False, **extra)
        except (click.Abort, KeyboardInterrupt):
            fail("interrupted", INTERRUPTED)
        except click.ClickException as error:
            fail(error.format_message())
        except OSError as error:
            fail(reason(error))
        except (ValueError, ImportError, ArithmeticError, mpc.MPCError) as error:
            fail(str(error))
        except MemoryError:
            fail("there is not enough memory for these records and settings")
        sys.exit(code if isinstance(code, int) else 0)


def prepare_help(command: click.Command) -> None:
    """Name the help options of a command and of all below it, show defaults, place its examples.

    A command keeps the help option of its first use, no matter who makes it; so it is made here.
    The docstring's examples, and what follows them, are shown after the options, line by line.
    """
    command.context_settings.setdefault("help_option_names", HELP_NAMES)
    command.context_settings.setdefault("show_default", True)
    command.get_help_option(click.Context(command, help_option_names=HELP_NAMES))
    text, title, examples = inspect.cleandoc(command.help or "").partition(EXAMPLES)
    if title:
        paragraphs = f"{title.strip()}\n{examples}".split("\n\n")
        command.help = text
        command.epilog = "\n\n".join(VERBATIM + paragraph for paragraph in paragraphs)
    if isinstance(command, click.Group):
        for part in command.commands.values():
            prepare_help(part)


def as_json(content: Any) -> str:
    """Strict JSON; a number that is not finite is an error."""
    return json.dumps(content, indent=2, allow_nan=False)


@contextmanager
def prompt_interrupt() -> Iterator[None]:
    """End at once when interrupted: waiting for working threads would save nothing."""

    def end(number: int, frame: object) -> NoReturn:
        cursor = "\033[?25h\n" if os.isatty(STDERR) else ""
        # not through sys.stderr, whose buffer refuses a second writer if a signal comes meanwhile
        with suppress(OSError):
            os.write(STDERR, f"{cursor}tacit: interrupted\n".encode())
        os._exit(INTERRUPTED)

    with _handled(end, signal.SIGINT):
        yield


@contextmanager
def terminable() -> Iterator[None]:
    """End as on Ctrl-C when asked to terminate, so that temporary files are removed."""

    def interrupt(number: int, frame: object) -> NoReturn:
        raise KeyboardInterrupt

    with _handled(interrupt, signal.SIGTERM, signal.SIGHUP):
        yield


@contextmanager
def _handled(handler: Callable[[int, object], NoReturn], *numbers: int) -> Iterator[None]:
    """Have signals handled meanwhile; one that the caller ignores stays ignored."""
    asked = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in asked}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def check_signal(has_signal: bool) -> None:
    """End with a status of its own where what was shown has no estimate."""
    if not has_signal:
        raise Exit(NO_SIGNAL)


def refuse(sentence: str, options: Mapping[str, Any], *names: str) -> None:
    """Refuse options that do not go with others.

    Parameters
    ----------
    sentence : says why, with ``{}`` in place of the first option that was given.
    options : values by name; None, False, or nothing in them for those not given.
    names : the options that are refused.

    Raises
    ------
    click.UsageError : naming the option.
    """
    for name in names:
        value = options[name]
        if value is not None and value is not False and value not in ((), {}):
            raise click.UsageError(sentence.format(f"--{name.replace('_', '-')}"))


def once_by_name(
    context: click.Context, option: click.Parameter, texts: Sequence[str]
) -> dict[str, str]:
    """The values of an option that is given once for each name, as NAME=VALUE.

    Raises
    ------
    click.BadParameter : for a text of another form, and for a second value of a name, which would
        replace the first: a client's second ledger would evade the limit of its first.
    """
    values: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        if not (name and equals and value) or name in values:
            form = option.metavar
            raise click.BadParameter(f"it is given once for each name, as {form}, got {text!r}")
        values[name] = value
    return values


def one_or_by_name(
    context: click.Context, option: click.Parameter, texts: Sequence[str]
) -> str | dict[str, str]:
    """A single value without ``=``, or the values that ``once_by_name`` gives."""
    if len(texts) == 1 and "=" not in texts[0]:
        return texts[0]
    return once_by_name(context, option, texts)


def show(text: str) -> None:
    """Print to standard output; a full disk behind it is an error like any other.

    Files hold the names of columns and groups: none of their control characters is printed. Where
    this process has a log, every line goes there instead.
    """
    lines = list(map(escaped, text.split("\n")))
    if all(map(operating.logged, lines)):
        return
    try:
        click.echo("\n".join(lines))
    except BrokenPipeError:
        raise
    except OSError as error:
        raise click.ClickException(
            f"the result cannot be written to standard output: {reason(error)}"
        ) from None


def show_timed(line: str) -> None:
    """Print a line with the time of this machine, which a log has already."""
    now = datetime.now().astimezone()
    show(line if operating.is_logging() else f"{now:%Y-%m-%d %H:%M:%S} {line}")


def complain(sentence: str, level: int = logging.WARNING) -> None:
    """Say something in one line on standard error, without control characters."""
    if not operating.logged(escaped(sentence), level):
        click.echo(escaped(sentence), err=True)


def reason(error: OSError) -> str:
    """What the system says of an error, with the file."""
    prefix = "" if error.filename is None else f"{error.filename}: "
    return f"{prefix}{error.strerror or error}"


def fail(sentence: str, code: int = FAILED) -> NoReturn:
    """Say what went wrong in one line, and end."""
    line = " ".join(sentence.split()).rstrip(".")
    complain(f"tacit: {line or 'failed without a reason'}", logging.ERROR)
    _settle_standard_output()
    sys.exit(code)


def _settle_standard_output() -> None:
    """Drop what standard output does not take, or the interpreter fails again as it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def progress_of(records: int, label: str) -> Iterator[Callable[[int], None]]:
    """A function that receives how many more records are done; silent where no terminal shows it.

    Parameters
    ----------
    records : all of them.
    label : what is done with them.
    """
    start = time.monotonic()

    def rate(done: int | None) -> str:
        return f"{(done or 0) / max(time.monotonic() - start, 1e-3):,.0f} rows/s"

    with click.progressbar(
        length=records,
        label=label,
        file=sys.stderr,
        hidden=not sys.stderr.isatty(),
        item_show_func=rate,
        show_pos=True,
        update_min_steps=1,
    ) as bar:

        def advance(more: int) -> None:
            done = min(bar.pos + more, records)
            bar.update(done - bar.pos, done)

        yield advance


PICTURES = (".png", ".svg", ".pdf")


class OutputFile:
    """A file that is checked to be writable beforehand, so that a typo loses no result."""

    def __init__(self, path: str, create_parents: bool = False) -> None:
        self.path = Path(path)
        self._target = Path(os.path.realpath(path))
        self._draft = self._target.parent / f".tacit-{os.getpid()}.part"
        try:
            if create_parents:
                self._target.parent.mkdir(parents=True, exist_ok=True)
            self._check()
        except OSError as error:
            raise self._refusal(error) from None

    def write(self, content: bytes) -> None:
        """Write all of the content, or leave the path as it was; a device is written directly."""
        try:
            if self._is_device:
                self._target.write_bytes(content)
                return
            self._draft.write_bytes(content)
            self._draft.replace(self._target)
        except OSError as error:
            raise self._refusal(error) from None
        finally:
            # interrupted or refused, it leaves no draft
            self._draft.unlink(missing_ok=True)

    def replaces(self, path: str) -> bool:
        """Whether writing would replace the file of this path."""
        return self._target == Path(os.path.realpath(path)) and not self._is_device

    @property
    def _is_device(self) -> bool:
        return self._target.exists() and not self._target.is_file()

    def _check(self) -> None:
        if self._target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if self._target.exists() and not os.access(self._target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if not self._is_device:
            self._draft.touch()
            self._draft.unlink()

    def _refusal(self, error: OSError) -> click.ClickException:
        return click.ClickException(f"{self.path} cannot be written: {error.strerror or error}")


class PictureFile(OutputFile):
    """A file for a matplotlib figure, in the format of its extension.

    Raises
    ------
    ImportError : with the install command, when matplotlib is not installed.
    """

    def __init__(self, path: str) -> None:
        if Path(path).suffix.lower() not in PICTURES:
            raise click.UsageError(f"a picture must end in {', '.join(PICTURES)}, got {path}")
        matplotlib_figure()  # before anything is computed that could not be drawn
        super().__init__(path)

    def save(self, figure: Any) -> None:
        """Write the figure in the format of the path, and say so on standard error."""
        self.draw(figure)
        click.echo(f"tacit: saved {self.path}", err=True)

    def draw(self, figure: Any) -> None:
        """Write the figure in the format of the path, for a command that names it itself."""
        drawn = io.BytesIO()
        figure.savefig(drawn, format=self.path.suffix[1:].lower())
        self.write(drawn.getvalue())


OPTION, PRINTED, SUFFIX = "--json", "-", ".json"


class JsonOutput:
    """Where a command's JSON goes.

    Parameters
    ----------
    target : None for nowhere, ``"-"`` for standard output, else a file, which is checked now.
    """

    def __init__(self, target: str | None) -> None:
        self._printed = target == PRINTED
        is_file = target is not None and not self._printed
        self._file = OutputFile(str(target), create_parents=True) if is_file else None

    def show(self, content: Any, text: Callable[[], str]) -> None:
        """Print the JSON or else the text, and write the file if one was named.

        Parameters
        ----------
        content : for the JSON.
        text : makes what a person reads.
        """
        if self._file is not None:
            self._file.write(f"{as_json(content)}\n".encode())
        show(as_json(content) if self._printed else text())


def json_option(command: Any) -> Any:
    """The option ``--json`` of a command, which gets a ``JsonOutput`` as ``output``."""
    return click.option(
        OPTION,
        "output",
        metavar="[FILE]",
        callback=lambda context, option, value: JsonOutput(value),
        help="Print JSON instead of the text, or with FILE (.json) also write it there.",
    )(command)


def with_json_value(command: click.Command, args: Sequence[str]) -> list[str]:
    """A command's arguments, in which ``--json`` has a value.

    Examples
    --------
    >>> @json_option
    ... @click.command()
    ... def cook(output):
    ...     pass
    >>> with_json_value(cook, ["--json", "a.csv"]), with_json_value(cook, ["--json", "r.json"])
    (['--json=-', 'a.csv'], ['--json=r.json'])
    """
    if not any(OPTION in each.opts for each in command.params):
        return list(args)
    made: list[str] = []
    for position, arg in enumerate(args):
        before = args[position - 1] if position else ""
        if arg == "--":
            return [*made, *args[position:]]
        if before == OPTION and arg.endswith(SUFFIX):
            made[-1] = f"{OPTION}={arg}"
        else:
            made.append(f"{OPTION}={PRINTED}" if arg == OPTION else arg)
    return made


def operator_options(command: Any) -> Any:
    """The options of a command, which gets ``metrics``; its log begins before it."""
    from tacit.running.session.toml_source import host_and_port  # noqa: PLC0415 -- not for --help

    metrics = click.option(
        "--metrics",
        metavar="HOST:PORT",
        callback=lambda context, option, text: host_and_port(text) if text else None,
        envvar="TACIT_METRICS",
        show_envvar=True,
        help="Answer /health and /metrics (Prometheus) at this address, for operators only.",
    )
    log_format = click.option(
        "--log-format",
        type=click.Choice(operating.FORMATS),
        callback=lambda context, option, form: operating.log_as(form),
        expose_value=False,
        default=operating.PLAIN,
        envvar="TACIT_LOG_FORMAT",
        show_envvar=True,
        help="A log on standard error, with time and level (text, json), that quotes no record.",
    )
    return metrics(log_format(command))
