"""The `rushlight` command, run as a user runs it: in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "rushlight.cli"]
QUICK = ["demo", "--steps", "12", "--hidden", "8"]


def environment(**more):
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), **more}


def rushlight(*arguments, **more):
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, env=environment(**more), timeout=120, encoding="utf-8"
    )


def refused(done):
    """Checks that a run ended with exit code 2 and one line that says why, and returns that line."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("rushlight: ")
    return line


def test_version_is_that_of_the_package():
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    done = rushlight("--version")
    assert (done.returncode, done.stdout) == (0, f"rushlight {wanted}\n")


def test_help():
    done = rushlight("--help")
    assert done.returncode == 0
    assert "demo" in done.stdout
    done = rushlight("demo", "--help")
    assert done.returncode == 0
    for option in ("--steps", "--seed", "--hidden", "--text"):
        assert option in done.stdout


def test_demo_learns_and_writes():
    done = rushlight("demo", "--steps", "60", "--hidden", "32")
    assert done.returncode == 0, done.stderr
    first, last = map(float, re.match(r"loss (\S+) -> (\S+) in 60 steps", done.stdout).groups())
    assert last < first - 0.5
    head, _, written = done.stdout.partition(":\n\n")
    assert len(written) > 300
    assert "\r" not in done.stderr  # not a terminal: whole lines only
    assert done.stderr.count("step ") == 11


def test_same_seed_same_sample_other_seed_another():
    runs = [rushlight(*QUICK, "--seed", seed).stdout.partition(":\n\n")[2] for seed in ("3", "3", "4")]
    assert runs[0] == runs[1] != ""
    assert runs[0] != runs[2]


def test_demo_reads_a_file_of_any_alphabet(tmp_path):
    path = tmp_path / "greek.txt"
    path.write_text("το φως του βούρλου είναι μικρό. " * 10, encoding="utf-8")
    done = rushlight(*QUICK, "--text", str(path), PYTHONIOENCODING="utf-8")
    assert done.returncode == 0, done.stderr
    assert "βούρλου" in done.stdout
    # A terminal that cannot show the letters gets question marks, not a traceback.
    done = rushlight(*QUICK, "--text", str(path), PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr


def test_control_characters_do_not_reach_the_terminal(tmp_path):
    path = tmp_path / "escape.txt"
    path.write_text("\x1b[31mred \x07bell " * 30)
    done = rushlight(*QUICK, "--text", str(path))
    assert done.returncode == 0, done.stderr
    assert not set("\x1b\x07") & set(done.stdout)


def test_missing_file(tmp_path):
    line = refused(rushlight("demo", "--text", str(tmp_path / "nothing.txt")))
    assert "nothing.txt" in line
    assert "No such file" in line


def test_folder_in_place_of_a_file(tmp_path):
    assert str(tmp_path) in refused(rushlight("demo", "--text", str(tmp_path)))


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "is empty"),
        (b"too short", "only 9 characters"),
        (b"good text " * 30 + b"\xff", "not UTF-8 text (byte 300)"),
    ],
    ids=["empty", "short", "latin"],
)
def test_unfit_file(tmp_path, content, complaint):
    path = tmp_path / "unfit.txt"
    path.write_bytes(content)
    assert complaint in refused(rushlight("demo", "--text", str(path)))


@pytest.mark.parametrize(
    "arguments",
    [
        ["demo", "--steps", "0"],
        ["demo", "--steps", "-5"],
        ["demo", "--steps", "many"],
        ["demo", "--steps", "1.5"],
        ["demo", "--steps"],
        ["demo", "--hidden", "0"],
        ["demo", "--hidden", "1000000"],
        ["demo", "--seed", "-1"],
        ["demo", "--seed", str(2**63)],
        ["demo", "--what"],
        ["demo", "more"],
        ["dance"],
        [],
    ],
    ids=" ".join,
)
def test_bad_arguments(arguments):
    assert "--help" in refused(rushlight(*arguments))


def start(*arguments, **more):
    # A shell may have started the tests with SIGINT ignored, and a child would inherit that.
    return subprocess.Popen(
        [*COMMAND, *arguments],
        text=True,
        env=environment(PYTHONUNBUFFERED="1"),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **more,
    )


@pytest.mark.skipif(os.name != "posix", reason="signals and pipes as POSIX has them")
def test_interrupt_says_what_was_reached():
    process = start("demo", "--steps", "1000000", "--hidden", "8", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for line in process.stderr:
        if line.startswith("step 1/"):  # training has begun
            break
    process.send_signal(signal.SIGINT)
    written, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert written == ""
    wanted = r"^rushlight: stopped after \d+ of 1000000 steps, at a loss of \d+\.\d+$"
    assert re.search(wanted, said, re.MULTILINE), said
    assert "Traceback" not in said


@pytest.mark.skipif(os.name != "posix", reason="signals and pipes as POSIX has them")
def test_broken_pipe_is_quiet():
    process = start(*QUICK, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()  # the reader leaves before anything is written
    said = process.stderr.read()
    assert process.wait(timeout=60) == 141
    assert not re.search("traceback|error|pipe", said, re.IGNORECASE), said


@pytest.mark.skipif(os.name != "posix", reason="signals and pipes as POSIX has them")
def test_terminal_gets_a_bar_redrawn_in_place():
    import pty

    ours, theirs = pty.openpty()
    process = start(*QUICK, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    seen = b""
    try:
        while chunk := os.read(ours, 4096):
            seen += chunk
    except OSError:  # Linux reports the closed terminal this way
        pass
    os.close(ours)
    assert process.wait(timeout=60) == 0
    assert b"\r[" in seen
    assert b"step 12/12" in seen
