import os
import sys
from pathlib import Path

import pytest

from oxygen_ros.clock import SimClock, SteadyClock
from oxygen_ros.speech.voice import CommandVoice, PrintedVoice, make_voice

CLOCK = SteadyClock()
PATIENCE_NS = 60_000_000_000


def python(code, *words):
    return (sys.executable, "-c", code, *words)


def until(condition, what):
    end_ns = CLOCK.now_ns() + PATIENCE_NS
    while not condition():
        assert CLOCK.now_ns() < end_ns, what


def said(voice, text):
    voice.begin(text)
    until(lambda: not voice.is_busy(), "the end of a command")


@pytest.fixture
def made():
    voices = []

    def make(*command, clock=CLOCK):
        voices.append(CommandVoice(command, clock))
        return voices[-1]

    yield make
    for voice in voices:
        voice.close()


@pytest.mark.parametrize(
    "text", ["$(touch no) `touch no`; 'quoted' \"too\" | &", "杯子 🍵", "--help", "-w out.wav"]
)
@pytest.mark.parametrize("by", ["stdin", "argument"])
def test_sentence_reaches_the_command_as_it_is(tmp_path, made, text, by):
    out = tmp_path / "out"
    if by == "stdin":
        voice = made(*python("import sys; open(sys.argv[1], 'wb').write(sys.stdin.buffer.read())", str(out)))
    else:
        code = "import os, sys; open(sys.argv[1], 'wb').write(os.fsencode(sys.argv[2]))"
        voice = made(*python(code, str(out), "{text}"))
    said(voice, text)
    assert voice.failure == ""
    assert out.read_text(encoding="utf-8").strip() == text
    assert list(tmp_path.iterdir()) == [out]
    if by == "argument":
        assert not out.read_text(encoding="utf-8").startswith("-"), "it could be taken for an option"


def test_sentence_longer_than_a_pipe_does_not_block(made):
    voice = made(*python("import time; time.sleep(600)"))
    voice.begin("x" * 1_000_000)
    assert voice.is_busy()


@pytest.mark.parametrize("command", [("/nowhere/espeak",), ("/",)])
def test_command_that_cannot_be_started_is_named(made, command):
    voice = made(*command)
    voice.begin("Hello.")
    assert not voice.is_busy()
    assert command[0] in voice.failure


def test_command_that_fails_is_reported_with_its_last_words_and_works_again_later(tmp_path, made):
    code = "import os, sys\nif not os.path.exists(sys.argv[1]): sys.exit('cannot open the sound card')"
    voice = made(*python(code, str(tmp_path / "card")))
    said(voice, "Hello.")
    assert "cannot open the sound card" in voice.failure
    assert "code 1" in voice.failure
    (tmp_path / "card").touch()
    said(voice, "Hello.")
    assert voice.failure == ""


def test_silenced_command_ends_with_all_it_has_started(tmp_path, made):
    pids = tmp_path / "pids"
    code = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "open(sys.argv[1] + '.new', 'w').write(f'{os.getpid()} {child.pid}')\n"
        "os.rename(sys.argv[1] + '.new', sys.argv[1])\n"
        "time.sleep(600)"
    )
    voice = made(*python(code, str(pids)))
    voice.begin("A long story.")
    until(pids.exists, "the start of a command")
    voice.silence()
    until(lambda: not voice.is_busy(), "silence")
    assert voice.failure == ""
    for pid in pids.read_text().split():
        until(lambda pid=pid: not is_running(int(pid)), f"the end of {pid}")


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_command_that_ignores_the_request_is_killed(tmp_path, made):
    clock, ready = SimClock(), tmp_path / "ready"
    code = (
        "import signal, sys, time; signal.signal(15, signal.SIG_IGN); open(sys.argv[1], 'w'); time.sleep(600)"
    )
    voice = made(*python(code, str(ready)), clock=clock)
    voice.begin("Hello.")
    until(ready.exists, "the start of a command")
    voice.silence()
    assert voice.is_busy()
    clock.advance_ns(10**9)
    until(lambda: not voice.is_busy(), "the end")


def test_voice_without_a_command_is_espeak_or_the_log(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    logged, warned = [], []
    voice = make_voice((), CLOCK, logged.append, warned.append)
    assert isinstance(voice, PrintedVoice)
    voice.begin("Hello.")
    assert logged == ["would say: Hello."]
    assert "espeak-ng is not installed" in warned[0]
    fake = tmp_path / "espeak-ng"
    fake.write_text("#!/bin/sh\n")
    os.chmod(fake, 0o755)
    assert isinstance(make_voice((), CLOCK, logged.append, warned.append), CommandVoice)
    assert len(warned) == 1


def test_failure_names_the_last_words_of_a_command_that_said_much(made):
    voice = made(
        *python("import sys; sys.stderr.write('ALSA: no such card\\n' * 1000); sys.exit('no audio')")
    )
    said(voice, "Hello.")
    assert voice.failure.endswith("no audio")


def test_silenced_command_takes_with_it_a_child_that_ignores_the_request(tmp_path, made):
    pids = tmp_path / "pids"
    child = (
        "import os, signal, sys, time\n"
        "signal.signal(15, signal.SIG_IGN)\n"
        "open(sys.argv[1] + '.new', 'w').write(str(os.getpid()))\n"
        "os.rename(sys.argv[1] + '.new', sys.argv[1])\n"
        "time.sleep(600)"
    )
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', *sys.argv[1:]])"
    voice = made(*python(code, child, str(pids)))
    voice.begin("A long story.")
    until(pids.exists, "the start of a child")
    voice.silence()
    until(lambda: not voice.is_busy(), "silence")
    until(lambda: not is_running(int(pids.read_text())), "the end of the child")
