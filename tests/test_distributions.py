"""What is published: a wheel and a source distribution that anybody can make again, byte by byte."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_two_clones_give_the_same_distributions_byte_by_byte(tmp_path):
    if subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True).returncode:
        pytest.skip("this is no clone of the repository")
    made = []
    for number, mask in enumerate(("022", "077")):
        clone, out = tmp_path / f"clone-{number}", tmp_path / f"out-{number}"
        subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
        shutil.copy(ROOT / ".ci" / "dist", clone / ".ci" / "dist")
        command = f'umask {mask}; "{clone / ".ci" / "dist"}" "{out}"'
        environment = {**os.environ, "TZ": "UTC" if number else "Asia/Tokyo"}
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environment)
        if done.returncode and "No matching distribution" in done.stderr:
            pytest.skip("the package index here has no setuptools")
        assert done.returncode == 0, done.stderr
        made.append({path.name: path.read_bytes() for path in sorted(out.iterdir())})
    assert len(made[0]) == 2
    assert made[0] == made[1]
    wheel, source = sorted(tmp_path.glob("out-0/*"), key=lambda path: path.suffix != ".whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {"hushnet/simulator/report/page.html", "hushnet/scenarios/quickstart.yaml"} <= set(names)
    assert not [name for name in names if name.startswith("hushnet/tests/")]
    with tarfile.open(source) as archive:
        inside = {entry.name.partition("/")[2] for entry in archive}
    assert {
        "pyproject.toml",
        "CITATION.cff",
        "LICENSE",
        "tests/test_distributions.py",
        ".ci/requirements.txt",
    } <= inside


def test_the_version_is_the_same_wherever_it_stands():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (.+)$", citation, re.MULTILINE)[1] == version  # pyright: ignore
    assert f"Version {version}," in (ROOT / "simulator" / "docs" / "pages" / "cite.md").read_text()
    heads = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert heads[0] == "Unreleased" or heads[0].startswith(version)


def test_the_paper_has_what_a_journal_of_software_asks_for():
    """Title, tags, authors and bibliography in the head; a summary, a statement of need; nothing cited is unknown."""
    paper = ROOT / "simulator" / "docs" / "paper" / "paper.md"
    text = paper.read_text()
    head, body = text.split("---\n")[1:3]
    assert all(f"{field}:" in head for field in ("title", "tags", "authors", "affiliations", "date", "bibliography"))
    sections = re.findall(r"^# (.+)$", body, re.MULTILINE)
    assert sections[:3] == ["Summary", "Statement of need", "State of the field"]
    assert "References" in sections
    known = set(re.findall(r"^@\w+\{(\w+),", (paper.parent / "paper.bib").read_text(), re.MULTILINE))
    cited = set(re.findall(r"@(\w+)", body))
    assert cited == known
    assert 250 <= len(body.split()) <= 1000
