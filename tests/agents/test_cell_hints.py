"""Advice follows from what stands in a file, and no advice leads away from it."""

import io
import zipfile

import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator.api import run


def refused(tmp_path, content, **task):
    path = tmp_path / "rows.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError) as error:
        run(scenario(path, **task), out=tmp_path / "out")
    return str(error.value)


def scenario(path, **task):
    return {
        "schema": 1,
        "scenario": "s",
        "task": {"kind": "csv", "path": str(path), "label": "y", "agent": "owner", "test_share": 0, **task},
        "topology": {"kind": "complete"},
        "engine": "event",
        "protocols": {"local": {"kind": "local"}},
        "record": {"every": 1.0, "metrics": ["training_loss"]},
        "stop": {"time": 1.0},
    }


CELLS = {
    "1,5": "decimal comma",
    "1.234,5": "decimal comma and points",
    "1,234": "commas between thousands",
    "12 %": "percentage",
    "?": "missing",
    "NA": "missing",
    "n/a": "missing",
    "nan": "missing",
    "-inf": "infinite",
    "$12": "amount",
    "2024-01-31": "date",
    "1_000": "underscores",
    "blue": "categorical",
}


@pytest.mark.parametrize(("cell", "says"), CELLS.items())
def test_a_cell_that_is_no_number_is_told_for_what_it_is(cell, says, tmp_path):
    quoted = f'"{cell}"'
    said = refused(tmp_path, f"owner,x,y\na,1,0\nb,{quoted},1\n")
    assert "rows.csv:3: column 'x' has" in said
    assert says in said
    assert ("categorical" in said) == (cell == "blue"), "a column of numbers is none of categories"


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_another_separator_is_named(delimiter, tmp_path):
    text = "owner,x,y\na,1,0\nb,2,1\n".replace(",", delimiter)
    said = refused(tmp_path, text)
    assert f"set task.delimiter: {delimiter!r}" in said
    path = tmp_path / "rows.csv"
    assert run(scenario(path, delimiter=delimiter), out=tmp_path / "out").agents["agent"].tolist() == ["a", "b"]


def workbook():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as packed:
        packed.writestr("[Content_Types].xml", "<Types/>")
        packed.writestr("xl/workbook.xml", "<workbook/>")
    return stream.getvalue()


FILES = {
    "xlsx": (workbook(), "is a workbook (xlsx); a text is needed, so save it as CSV"),
    "xls": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512), "old Office (xls)"),
    "parquet": (b"PAR1" + bytes(64) + b"PAR1", "is a parquet file"),
    "npy": (b"\x93NUMPY\x01\x00" + bytes(64), "is an array of numpy"),
    "hdf5": (b"\x89HDF\r\n\x1a\n" + bytes(64), "is an HDF5 file"),
    "sqlite": (b"SQLite format 3\x00" + bytes(64), "is an SQLite database"),
    "arff": (b"@RELATION iris\n@ATTRIBUTE x NUMERIC\n@DATA\n1,2\n", "begins as an ARFF file"),
}


@pytest.mark.parametrize(("content", "says"), FILES.values(), ids=FILES)
def test_other_programs_files_are_told_for_what_they_are(content, says, tmp_path):
    said = refused(tmp_path, content)
    assert says in said
    assert "unpack" not in said


def test_the_index_of_pandas_is_named(tmp_path):
    said = refused(tmp_path, ",owner,x,y\n0,a,1,0\n1,b,2,1\n")
    assert "column 1 has no name" in said
    assert "to_csv has index=False" in said


def test_columns_that_are_hardly_meant_so_are_warned_of(tmp_path):
    path = tmp_path / "rows.csv"
    rows = [f"{k},{'ab'[k % 2]},name{k},{k % 3},{k % 2}" for k in range(12)]
    path.write_text("\n".join(["Unnamed: 0,owner,who,x,y", *rows]) + "\n")
    result = run(scenario(path, features=["Unnamed: 0", "who", "x"], categorical=["who"]), out=tmp_path / "out")
    said = " ".join(result.manifests[0]["warnings"])
    assert "categorical column 'who' has another value in each of its 12 rows" in said
    assert "column 'Unnamed: 0' counts the rows" in said


def test_a_difference_that_rounding_would_hide_is_shown(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("owner,x,y\n" + "".join(f"{'ab'[k % 2]},{k},{k % 2}\n" for k in range(6)))
    up = tmp_path / "up.csv"
    up.write_text("agent,up_from,up_to\na,1.00000002,1.00000001\n")
    absent = {"availability": {"kind": "trace", "path": str(up), "others": "up"}}
    with pytest.raises(InputError, match=r"up_from 1\.00000002 must be below up_to 1\.00000001"):
        run({**scenario(path), **absent}, out=tmp_path / "out")
