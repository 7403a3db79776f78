"""What another program's environment holds is no reason to fail: encodings, closed streams, backends, limits."""

import io
import shutil
import subprocess
import sys
import threading

import pytest
from hushnet.simulator.cli import main
from hushnet.simulator.cli import output_streams as streams

SCENARIO = """\
schema: 1
scenario: there
task: {kind: linear_classification, agents: 4, dimension: 2, samples: [4, 6], test_samples: 3}
topology: {kind: ring}
engine: event
stop: {time: 2}
seeds: 2
protocols: {cd: {kind: coordinate_descent, label: "ε → ∞, naïve –"}, local: {kind: local}}
figures: [{y: accuracy, x: time}]
style: {formats: [png]}
"""


@pytest.fixture
def environment(monkeypatch):
    """What `main` changes is as it was afterwards."""
    monkeypatch.setenv("MPLBACKEND", "agg")
    return monkeypatch


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    (folder / "s.yaml").write_text(SCENARIO, encoding="utf-8")
    assert main(["run", str(folder / "s.yaml"), "--out", str(folder / "out"), "--quiet"]) == 0
    return folder


@pytest.fixture
def finished(made, tmp_path):
    """A scenario whose runs and figures are there, and its results."""
    folder = shutil.copytree(made, tmp_path / "made")
    return folder / "s.yaml", folder / "out"


class Output(io.TextIOWrapper):
    """A standard stream of an encoding."""

    def __init__(self, encoding):
        super().__init__(io.BytesIO(), encoding=encoding, errors="strict", write_through=True)

    def said(self):
        self.flush()
        return self.buffer.getvalue().decode(self.encoding, "replace")


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1", "cp437", "utf-8"])
def test_every_encoding_takes_what_is_said(encoding, environment, finished):
    path, out = map(str, finished)
    commands = [["run", path, "--out", out, "--quiet"], ["compare", out], ["list"], ["explain", "cd"]]
    for command in commands:
        stdout, stderr = Output(encoding), Output(encoding)
        environment.setattr(sys, "stdout", stdout)
        environment.setattr(sys, "stderr", stderr)
        assert main(command) == 0, stderr.said()
        assert stderr.said() == "" or "not foresee" not in stderr.said()
        assert stdout.said()


CLOSED = {">&-": 0, "2>&-": 0, ">&- 2>&-": 0, "> /dev/full": 5, "1</dev/null": 5, "| true": 1}


@pytest.mark.parametrize(
    ("redirection", "code", "buffered"),
    [(redirection, code, True) for redirection, code in CLOSED.items()]
    + [("> /dev/full", 5, False), ("| true", 1, False)],
)
def test_a_standard_output_that_takes_nothing_is_no_error_of_ours(redirection, code, buffered, monkeypatch):
    monkeypatch.setenv("PYTHONUNBUFFERED", "" if buffered else "1")
    command = f'"{sys.executable}" -m hushnet.simulator.cli list {redirection}; exit ${{PIPESTATUS[0]}}'
    ended = subprocess.run(["bash", "-c", command], capture_output=True, check=False, text=True)
    assert ended.returncode in {code, 0}
    assert "Traceback" not in ended.stderr
    assert "not foresee" not in ended.stderr
    if code == 5:
        assert ended.returncode == 5
        assert "standard output: " in ended.stderr


def test_a_limit_on_threads_is_said_to_be_one(environment, tmp_path, capsys):
    def start(self):
        raise RuntimeError("can't start new thread")

    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    environment.setattr(threading.Thread, "start", start)
    assert main(["run", str(path), "--out", str(tmp_path / "out")]) == 5
    said = capsys.readouterr().err
    assert "no further thread or process may be started here" in said
    assert "interrupted" not in said


def test_letters_that_an_output_lacks_have_plain_forms(environment):
    stdout = Output("ascii")
    environment.setattr(sys, "stdout", stdout)
    streams.prepare()
    print("⚠ ε ≤ 1 ± 0.5 − 2 × ∞ … naïve – ‘x’ ─│ 日", end="")
    assert stdout.said() == "! epsilon ? 1 +- 0.5 - 2 x inf ... naive - 'x' -| ?"
