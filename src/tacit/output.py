"""Files that the command writes: checked before anything is spent, and written whole."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path
from typing import Any

import click

from tacit.extras import matplotlib_figure

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
