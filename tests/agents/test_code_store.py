"""A folder of compiled code: which one, whom it trusts, and how large it grows."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hushnet.agents.compilation import code_store
from hushnet.agents.compilation.code_store import CodeStore
from hushnet.agents.compilation.dispatchers import announce

from .stored_code import doubled, looked_up

# Which folder, and whom it trusts.


def test_the_folder_is_the_variables_or_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("HUSHNET_CACHE_DIR", str(tmp_path / "mine"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert code_store._folder() == tmp_path / "mine"
    monkeypatch.setenv("HUSHNET_CACHE_DIR", "")
    assert code_store._folder() == tmp_path / "xdg" / "hushnet" / "compiled"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert code_store._folder() == tmp_path / "home" / ".cache" / "hushnet" / "compiled"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert code_store._folder() == tmp_path / "home" / ".cache" / "hushnet" / "compiled"


def nobody_at_home():
    raise RuntimeError("Could not determine home directory.")


def test_without_a_home_nothing_is_stored(monkeypatch, folder):
    monkeypatch.delenv("HUSHNET_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", nobody_at_home)
    assert doubled()(21) == 42
    assert code_store.code_store().refusal == "there is no home folder"


def test_folder_and_files_are_for_their_user_alone(folder):
    doubled()(21)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [file.stat().st_mode & 0o777 for file in folder.iterdir()] == [0o600]


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_folder_that_others_can_write_is_not_used(folder, mode, capsys):
    folder.mkdir()
    folder.chmod(mode)
    made = doubled()
    announce(made, "doubles")
    assert made(21) == 42
    assert list(folder.iterdir()) == []
    assert f"compiling doubles; the compiled code is not kept, for {folder} belongs to" in capsys.readouterr().err


def test_a_folder_of_another_user_is_not_used(folder, monkeypatch):
    folder.mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    assert "belongs to another user" in CodeStore(folder).refusal


def test_a_file_that_others_can_write_is_not_read(folder):
    store = CodeStore(folder)
    store.write("a", b"content")
    assert store.read("a") == b"content"
    (folder / "a").chmod(0o620)
    assert store.read("a") is None


def test_a_link_is_not_read(folder, tmp_path):
    store = CodeStore(folder)
    store.write("a", b"content")
    (folder / "a").rename(tmp_path / "a")
    (folder / "a").symlink_to(tmp_path / "a")
    assert store.read("a") is None


@pytest.mark.parametrize("place", ["a file", "below a file", "the null device"])
def test_where_there_can_be_no_folder_functions_are_compiled_all_the_same(place, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    where = {"a file": tmp_path / "file", "below a file": tmp_path / "file" / "code", "the null device": "/dev/null"}
    monkeypatch.setenv("HUSHNET_CACHE_DIR", str(where[place]))
    assert doubled()(21) == 42
    assert code_store.code_store().refusal


def refuse(*_, **__):
    raise OSError(30, "Read-only file system")


def test_a_read_only_folder_is_read_and_left_alone(folder, monkeypatch):
    assert doubled()(21) == 42
    before = sorted(folder.iterdir())
    with monkeypatch.context() as patched:
        for name in ("replace", "unlink", "utime"):
            patched.setattr(os, name, refuse)
        again = doubled()
        assert again(21) == 42
        assert looked_up(again) == (1, 0)
        assert again(0.5) == 1.0
    assert sorted(path for path in folder.iterdir() if not path.name.startswith(".")) == before


def test_what_is_half_written_is_not_there(folder, monkeypatch):
    store = CodeStore(folder)
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", refuse)
        store.write("a", b"content")
    assert list(folder.iterdir()) == []
    assert store.read("a") is None


# Its size.


def test_a_full_store_loses_what_was_not_used_for_longest(folder, monkeypatch):
    store = CodeStore(folder)
    long_ago = time.time() - 10 * 3600
    for rank, name in enumerate("abcdefghij"):
        store.write(name, bytes(1000))
        os.utime(folder / name, (long_ago + rank, long_ago + rank))
    assert store.read("a") is not None  # which notes the use
    monkeypatch.setattr(code_store, "MOST", 8 * (folder / "a").stat().st_size)
    store.trim()
    left = sorted(file.name for file in folder.iterdir())
    assert left == ["a", "f", "g", "h", "i", "j"]
    store.trim()
    assert sorted(file.name for file in folder.iterdir()) == left


def test_writing_looks_at_the_size_now_and_then(folder, monkeypatch):
    looks = []
    monkeypatch.setattr(CodeStore, "trim", lambda self: looks.append(len(list(self.folder.iterdir()))))
    store = CodeStore(folder)
    for number in range(130):
        store.write(str(number), b"content")
    assert looks == [1, 65, 129]


def test_what_a_killed_process_left_is_removed_after_a_while(folder):
    store = CodeStore(folder)
    store.write("a", b"content")
    for name, age in ((".old", 7200), (".new", 0)):
        (folder / name).touch()
        os.utime(folder / name, (time.time() - age,) * 2)
    store.trim()
    assert sorted(file.name for file in folder.iterdir()) == [".new", "a"]
