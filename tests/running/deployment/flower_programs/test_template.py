"""Programs as forks of a prepared process: what they inherit and never share, how they end."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.running.deployment.flower_programs import launcher, template
from tacit.running.deployment.flower_programs.guards import write_guards
from tacit.running.deployment.flower_programs.programs import Flower, Program
from tests import known
from tests.running.deployment.processes import comes, running

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are made on Linux only")

WAIT = 60.0
DRAWS = """
import json, os, random, secrets
import numpy as np
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from fractions import Fraction
from tacit.crypto.identities import Identity
from tacit.privacy.mechanisms import *
from tacit.privacy.noise import SystemNoise

COPIED = np.random.default_rng()

def draws():
    noise, wide = SystemNoise(), 2.0**40
    return {
        "discrete_laplace": noise.draw(DiscreteLaplace(wide, 1.0), (4,)).tolist(),
        "discrete_gaussian": noise.draw(DiscreteGaussian(1, wide), (4,)).tolist(),
        "laplace": noise.draw(Laplace(wide, 1.0), (4,)).tolist(),
        "gaussian": noise.draw(Normal(wide), (4,)).tolist(),
        "staircase": noise.draw(Staircase(2**40, 0.5), (4,)).tolist(),
        "polya": noise.draw(PolyaShare(2.0**15, 1.0, Fraction(1, 3)), (16,)).tolist(),
        "bernoulli": noise.draw(Bits(0.5), (128,)).tolist(),
        "integers": noise.draw(UniformIntegers(2**60), (4,)).tolist(),
        "choices": noise.draw(Choices([1] * 1000), (16,)).tolist(),
        "system": os.urandom(16).hex(),
        "secrets": secrets.token_hex(16),
        "random": random.random(),
        "generator": np.random.default_rng().random(),
        "identity": Identity.generate().to_bytes().hex(),
        "exchange": X25519PrivateKey.generate().private_bytes_raw().hex(),
        "curve": ec.generate_private_key(ec.SECP256R1()).private_numbers().private_value,
        "common": np.random.random(),
        "copied": COPIED.random(),
    }
"""
SERVER = """
import json, os, socket, sys
from tacit.running.deployment.flower_programs.template import Forks

request = Forks(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])).serve()
exec(request.arguments[1])
"""
SLEEP = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"


class Prepared:
    """A prepared process whose forks run a line of Python.

    Parameters
    ----------
    folder : for its socket and log.
    before : what it runs before it forks.
    """

    def __init__(self, folder: Path, before: str = "") -> None:
        self.folder = folder / "programs"
        self.folder.mkdir(mode=0o700)
        ended, self.alive = os.pipe()
        with template._listening(self.folder) as listener:
            files = (listener.fileno(), ended)
            command = [sys.executable, "-c", before + SERVER, *map(str, files)]
            environment = dict(os.environ) | template.THREADLESS
            self.program = Program(command, environment, folder / "log", files)
        os.close(ended)

    def start(self, code: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """Start a launcher."""
        command = [sys.executable, "-I", "-S", str(launcher.__file__), str(self.folder)]
        return subprocess.Popen(
            [*command, "program", code, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=self.folder.parent,
        )

    def said(self, code: str) -> str:
        """What a fork prints."""
        with self.start(code) as started:
            said, _ = started.communicate(timeout=WAIT)
        assert started.returncode == 0, self.program.said()
        return said


@contextmanager
def served(folder: Path, before: str = "") -> Iterator[Prepared]:
    """A prepared process until the block ends."""
    own = Prepared(folder, before)
    with own.program:
        yield own
    os.close(own.alive)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prepared]:
    """A prepared process that no test ends."""
    with served(tmp_path_factory.mktemp("prepared")) as own:
        yield own


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """How a program of a few lines ended, and what it printed."""
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT,
        env=dict(os.environ) | environment,
    )


def has_ended(process: int) -> bool:
    """Whether a process ends, which may take it a moment."""
    return comes(lambda: process not in running())


def fork_of(started: subprocess.Popen[str]) -> int:
    """The process number that a fork printed."""
    return int(known(started.stdout).readline())


def test_a_fork_is_the_program_that_was_asked_for(prepared: Prepared) -> None:
    """Arguments, environment, working folder, files and status are the launcher's."""
    code = (
        "print(json.dumps([sys.argv, dict(os.environ), os.getcwd(), sys.stdin.read(), "
        "os.getsid(0) == os.getpid()])); raise SystemExit(7)"
    )
    started = prepared.start(code, "", "two words", "ä", NAME="va=lue", EMPTY="")
    said, _ = started.communicate("typed", timeout=WAIT)
    arguments, environment, folder, typed, leads = json.loads(said)
    assert arguments == ["program", code, "", "two words", "ä"]
    assert environment.items() >= {"NAME": "va=lue", "EMPTY": ""}.items()
    assert "PATH" not in environment
    assert (folder, typed, leads) == (str(prepared.folder.parent), "typed", True)
    assert started.returncode == 7


def test_a_launcher_gets_and_ends_by_the_signals_of_its_fork(prepared: Prepared) -> None:
    with prepared.start("import signal; os.kill(os.getpid(), signal.SIGTERM)") as started:
        assert started.wait(WAIT) == -signal.SIGTERM
    code = (
        "import signal, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n"
        "print(os.getpid(), flush=True)\ntime.sleep(600)"
    )
    with prepared.start(code) as started:
        fork = fork_of(started)
        started.send_signal(signal.SIGTERM)
        assert started.wait(WAIT) == 5
    assert has_ended(fork)
    assert prepared.program.is_running


def test_forks_do_not_outlive_their_launcher(prepared: Prepared) -> None:
    with prepared.start(SLEEP) as other, prepared.start(SLEEP) as started:
        fork, rest = fork_of(started), fork_of(other)
        started.kill()
        assert has_ended(fork)
        assert rest in running()
        other.kill()


@pytest.mark.parametrize("end", ["killed", "asked to end", "without its owner"])
def test_forks_do_not_outlive_the_prepared_process(tmp_path: Path, end: str) -> None:
    with served(tmp_path) as prepared, prepared.start(SLEEP) as started:
        fork = fork_of(started)
        if end == "without its owner":
            os.dup2(os.open(os.devnull, os.O_RDONLY), prepared.alive)
        else:
            os.kill(prepared.program.pid, signal.SIGKILL if end == "killed" else signal.SIGTERM)
        assert started.wait(WAIT) != 0
        assert has_ended(fork)
        assert has_ended(prepared.program.pid) or not prepared.program.is_running


def test_two_forks_share_no_randomness(tmp_path: Path) -> None:
    """Noise and keys differ, wherever they come from. A generator that a module made before the
    fork is copied with the process and so repeats, which shows that the comparison notices. The
    process draws before it forks, so that what a library keeps for later draws is there to be
    copied. All draws have 32 bits and more: a false alarm has a probability below 1e-8."""
    with served(tmp_path, DRAWS + "\ndraws()\n") as own:
        said = [own.said("print(json.dumps(draws()))") for _ in range(2)]
    first, second = map(json.loads, said)
    assert first.pop("copied") == second.pop("copied")
    assert [name for name in first if first[name] == second[name]] == []
    assert len(first) == 17


def test_nothing_of_a_fork_is_seen_by_the_next(prepared: Prepared) -> None:
    prepared.said("import tacit; tacit.left = 1; os.environ['LEFT'] = '1'; os.chdir('/')")
    said = prepared.said("import tacit; print(hasattr(tacit, 'left'), os.environ.get('LEFT'))")
    assert said == "False None\n"


def test_a_request_of_another_kind_makes_no_fork(prepared: Prepared) -> None:
    for content in (b"", b"\0" * 8, launcher.SIZE.pack(2**40), b"GET / HTTP/1.1\r\n"):
        connection = launcher.connected(str(prepared.folder))
        with connection:
            connection.sendall(content)
            connection.shutdown(socket.SHUT_WR)
            assert launcher.read_line(connection) == b""
    assert prepared.said("print('still there')") == "still there\n"


def test_a_process_that_cannot_fork_goes_on_and_its_forks_with_it(tmp_path: Path) -> None:
    """The second fork fails, as it does where a user may have no more processes."""
    limited = (
        "import os\n"
        "whole, turns = os.fork, [0, 1, 0]\n"
        "def fork():\n"
        "    if turns.pop(0):\n"
        "        raise BlockingIOError('no more processes')\n"
        "    return whole()\n"
        "os.fork = fork\n"
    )
    with served(tmp_path, limited) as own, own.start(SLEEP) as started:
        first = fork_of(started)
        with (
            launcher.connected(str(own.folder)) as connection,
            pytest.raises(ConnectionResetError, match="made no fork"),
        ):
            launcher.forked(connection, ["program", "print('refused')"])
        assert own.said("print('still there')") == "still there\n"
        assert first in running()
        started.terminate()


def test_a_fork_that_does_not_become_its_program_is_no_program(prepared: Prepared) -> None:
    """Its status is not taken for its process number, which would then be killed."""
    content = launcher.packed(["program", "1"], {})
    with (
        launcher.connected(str(prepared.folder)) as connection,
        Path(os.devnull).open("rb") as no_folder,
    ):
        files = [no_folder.fileno()] * launcher.PASSED_FILES
        socket.send_fds(connection, [launcher.SIZE.pack(len(content))], files)
        connection.sendall(content)
        # 120 where what the fork says on its closed standard error cannot be flushed
        assert launcher.read_line(connection) in (b"ended 1", b"ended 120")


def test_another_user_is_not_answered(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    path = prepared.folder / launcher.SOCKET
    assert path.stat().st_mode & 0o777 == 0o600
    assert prepared.folder.stat().st_mode & 0o777 == 0o700
    with launcher.connected(str(prepared.folder)) as connection:
        assert launcher.has_same_owner(connection)
        other = os.getuid() + 1
        monkeypatch.setattr(os, "getuid", lambda: other)
        assert not launcher.has_same_owner(connection)
    with pytest.raises(PermissionError, match="another user"):
        launcher.connected(str(prepared.folder))


def test_a_process_with_threads_makes_no_forks() -> None:
    code = (
        "import threading, time\nfrom tacit.running.deployment.flower_programs import template\n"
        "template.PREPARED = ()\n"
        "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
        "template.main(-1, -1)"
    )
    done = python(code)
    said = "tacit: an import started a thread; programs are started again\n"
    assert (done.returncode, done.stderr) == (1, said)


def test_protocols_of_other_packages_are_imported_in_the_fork(tmp_path: Path) -> None:
    """What their modules make when they are imported would be the same in all forks."""
    (tmp_path / "foreign.py").write_text("print('imported')")
    made = tmp_path / "foreign-1.0.dist-info"
    made.mkdir()
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign\nVersion: 1.0\n")
    (made / "entry_points.txt").write_text("[tacit.protocols]\nforeign-auc = foreign:Foreign\n")
    code = (
        "import sys\n"
        "from tacit.protocol.registry import protocol_names\n"
        "from tacit.running.deployment.flower_programs import template\n"
        "template.PREPARED = ()\n"
        "template.is_single_threaded = lambda: sys.exit(\n"
        "    f\"{'foreign-auc' in protocol_names()} {'tacit.protocols.dpauc' in "
        'sys.modules}")\n'
        "template.main(-1, -1)"
    )
    done = python(code, PYTHONPATH=str(tmp_path))
    assert (done.stdout, done.stderr) == ("", "True True\n")


@pytest.mark.slow
def test_flowers_programs_are_forked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All imports of both sides start no thread, and a program of Flower's runs as a fork."""
    pytest.importorskip("flwr")
    folder = write_guards(tmp_path / "programs")
    monkeypatch.setenv("FLWR_HOME", str(tmp_path / "flower"))
    part = known(template.start_template(Flower(tmp_path / "flower", folder), folder))
    with part, launcher.connected(str(folder)) as connection:
        launcher.forked(connection, ["flwr", "--version"])
        assert launcher.read_line(connection) == b"ended 0"
        assert part.said() == ""
        assert part.is_running
    assert not part.is_running


def test_a_program_starts_anew_without_a_prepared_process(tmp_path: Path) -> None:
    """Also where one left its socket behind."""
    folder = write_guards(tmp_path / "programs")
    template._listening(folder).close()
    assert (folder / launcher.SOCKET).is_socket()
    done = subprocess.run(
        [folder / "flwr-model"], capture_output=True, text=True, check=False, timeout=WAIT
    )
    assert done.returncode == 2
    assert "flwr-model does not belong to a federation of tacit" in done.stderr


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=10)
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0="), min_size=1, max_size=10)


@settings(max_examples=30)
@given(st.lists(WORDS, min_size=1, max_size=5), st.dictionaries(NAMES, WORDS, max_size=5))
def test_a_request_arrives_as_sent(arguments: list[str], environment: dict[str, str]) -> None:
    encoded = {os.fsencode(name): os.fsencode(value) for name, value in environment.items()}
    assert launcher.unpacked(launcher.packed(arguments, encoded)) == (arguments, encoded)
    for content in (b"", b"x", b"2\0one", b"0", b"1\0name\0no sign", b"-1\0a\0b"):
        with pytest.raises(ValueError, match=r"no request|invalid literal"):
            launcher.unpacked(content)


@pytest.mark.parametrize(
    ("program", "status", "said"),
    [
        ("pass", 0, ""),
        ("sys.exit()", 0, ""),
        ("sys.exit(7)", 7, ""),
        ("sys.exit('a reason')", 1, "a reason\n"),
        ("raise ValueError('a fault')", 1, "ValueError: a fault\n"),
    ],
)
def test_a_fork_ends_as_python_does(program: str, status: int, said: str) -> None:
    """With its status, after its threads and what it registered for its exit, all written."""
    code = (
        "import atexit, sys, threading, time\n"
        "from tacit.running.deployment.flower_programs import template\n"
        "def body():\n"
        "    atexit.register(lambda: print('at exit'))\n"
        "    threading.Thread(target=lambda: print('from a thread')).start()\n"
        f"    {program}\n"
        "template._leave_quickly(template.run_to_end(body))\n"
    )
    done = python(code)
    assert done.returncode == status
    assert sorted(done.stdout.splitlines()) == ["at exit", "from a thread"]
    assert done.stderr.endswith(said)
    assert bool(done.stderr) == bool(said)
