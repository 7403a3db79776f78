"""All runs of an experiment on disk: complete or absent, checked byte by byte, and safe from a second process.

::

    results/<scenario>/
      .hushnet.json           whose folder it is, see `hushnet.simulator.storage.ownership`
      index.json              the runs of the latest experiment, and how to draw them
      <run id>/               one run, see `hushnet.simulator.storage.run_folder`
      graphs/<hash>.parquet   the graphs of the runs, each once: tail, head, weight
      dataset/                all runs of the index as one dataset, see `hushnet.simulator.storage.dataset`
      .lock                   held while an experiment runs

Any process may save a run at any time: what is written gets a name of its own, is synced, and is renamed. A process
that is killed therefore leaves whole runs and strays with hidden names, which the next one sweeps away.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from ...agents.errors import InputError
from ...agents.graph import Graph
from ...agents.scratch import STRAY
from . import dataset, ownership, run_folder
from .dataset import Entry
from .documents import Index, read_document
from .files import Frame, json_text, no_links, own_bytes, parquet, put_file, read_table, remove, sync, writing
from .provenance import edges, edges_hash
from .run_folder import RunResult, State
from .sharing import Shared

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

NO_LOCKS = (None, errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)
"""What a system says, or one of its file systems, that has no locks."""
_GRAPH = re.compile(r"[0-9a-f]{32}\.parquet")
_FAILURE = re.compile(r"[0-9a-f]{16}\.txt")


@dataclass(frozen=True)
class Store:
    """The runs of one scenario."""

    root: Path
    """``results/<scenario>``; made when something is written."""
    token: str | None = None
    """From `claimed`: what is saved goes into just that folder, and nowhere if it has been moved since."""

    def claimed(self) -> Store:
        """The same store, once it is sure that the folder is hushnet's own; raises like `ownership.claim`."""
        return replace(self, token=ownership.claim(self.root))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from running an experiment in this store.

        The kernel lets go of the lock when its process ends, however it ends. It holds between processes of one
        machine, and between machines as far as their shared file system has ``flock``: NFS does, Lustre only if it is
        mounted with it. Where there is none, a warning says so and nothing is excluded. Raises `InputError` if another
        process holds it, which the sentence names, or the folder is not hushnet's own.
        """
        self._here()
        with writing(self.root):
            stream = (self.root / ".lock").open("a+", encoding="utf-8")
        with stream:
            self._lock(stream)
            with writing(self.root):
                stream.truncate(0)
                stream.write(f"process {os.getpid()} on {socket.gethostname()}")
                stream.flush()
            try:
                yield
            finally:
                stream.truncate(0)

    def _lock(self, stream: Any) -> None:
        try:
            if fcntl is None:
                raise OSError("this system has no flock")
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.seek(0)
            holder = stream.read().strip() or "another process"
            raise InputError(
                f"{self.root}: {holder} is writing there; wait until it has ended, or choose another folder with --out"
            ) from None
        except OSError as error:
            if error.errno not in NO_LOCKS:
                with writing(self.root):
                    raise
            warnings.warn(f"{self.root} cannot be locked ({error}); run one experiment there at a time", stacklevel=4)

    def holder(self) -> str | None:
        """Name the process that holds the lock, ``process 12 on host``; None if there is none, or it is no more."""
        path = self.root / ".lock"
        if not path.is_file() or path.is_symlink():
            return None
        found = re.fullmatch(r"process (\d{1,9}) on (.+)", own_bytes(path).decode(errors="replace").strip())
        if found is None or (found[2] == socket.gethostname() and not psutil.pid_exists(int(found[1]))):
            return None
        return found[0]

    def sweep(self) -> list[str]:
        """Remove what killed processes have left, strays and damaged graphs, and list it; only while `locked`.

        A stray that holds a whole run which is not there otherwise is put in its place. Runs that no index names any
        more stay: they are results. Paths are relative to the root.
        """
        graphs, cache = self.root / "graphs", self.root / ".cache"
        places = (self.root, graphs, self.root / "figures", cache, *sorted(cache.glob("*")))
        hidden = [path for place in places for path in sorted(place.glob(".*"))]
        swept = [path for path in hidden if STRAY.fullmatch(path.name) and not self._rescued(path)]
        named = [path for path in sorted(graphs.glob("*.parquet")) if _GRAPH.fullmatch(path.name)]
        swept += [path for path in named if not _is_graph(path)]
        for path in swept:
            remove(path)
        return [path.relative_to(self.root).as_posix() for path in swept]

    def forget_failures(self) -> None:
        """Remove what is known about runs that failed; only while `locked`."""
        folder = self.root / "failures"
        for path in sorted(folder.glob("*.txt")):
            if _FAILURE.fullmatch(path.name):
                path.unlink(missing_ok=True)
        with suppress(OSError):
            folder.rmdir()

    def state(self, run_id: str) -> State:
        """State of a run: absent, complete, or damaged if a file, or the graph that it names, is another."""
        found = run_folder.state(self._run(run_id))
        if found == "complete":
            graph = (self.manifest(run_id).get("topology") or {}).get("graph")
            return found if graph is None or self._graph(graph).is_file() else "damaged"
        return found

    def save(self, run_id: str, result: RunResult) -> None:
        """`save_all` of one."""
        self.save_all({run_id: result})

    def save_all(self, results: Mapping[str, RunResult]) -> None:
        """Keep runs by their ids, each as a whole; needs no lock, from whatever process.

        Raises `OutOfResources` if the disk is full, where nothing is left behind, and `InputError` if the folder may
        not be written, is not hushnet's own, or was moved since it was `claimed`.
        """
        self._here()
        with writing(self.root):
            run_folder.write_runs({self._run(run_id): result for run_id, result in results.items()})

    def load(self, run_id: str) -> RunResult:
        """Read a run back; raises an `InputError` that names the file if one is missing or damaged."""
        return run_folder.read_run(self._run(run_id))

    def manifest(self, run_id: str) -> dict[str, Any]:
        """A run's manifest; raises like `load`."""
        return run_folder.read_manifest(self._run(run_id))[0]

    def save_graph(self, graph: Graph) -> str:
        """Keep a graph, once for all runs that use it, by a hash of its edges, which is returned; needs no lock."""
        table = edges(graph)
        name = edges_hash(table)
        if not self._graph(name).is_file():
            self._here()
            with writing(self.root):
                put_file(parquet(table), self._graph(name), within=self.root)
        return name

    def load_graph(self, name: str) -> Frame:
        """The edges of a graph, each once: ``tail``, ``head`` (positions of agents from 0), ``weight``.

        Raises `InputError` if it is missing or damaged.
        """
        return read_table(self._graph(name))

    def write_index(
        self,
        *,
        scenario: str,
        runs: list[str],
        figures: list[dict[str, Any]],
        labels: dict[str, str],
        time_unit: str | None = None,
        grids: list[dict[str, Any]] | None = None,
        **more: Any,
    ) -> None:
        """Say which runs make up the latest experiment and how to show them, in ``index.json``, atomically.

        Runs are in order, labels in that of the scenario, in which protocols are drawn. Grids are the swept values by
        path, one for each run, by default those of the manifests: a run whose protocol does not depend on what is swept
        is kept once and listed at every grid point. ``more`` is what else readers want to know of the experiment, such
        as its ``target``. Raises `ValueError` if a run is listed twice without saying where in the grid.
        """
        if grids is None and len(set(runs)) < len(runs):
            raise ValueError("a run that stands for several grid points needs grids")
        index = {"scenario": scenario, "runs": runs, "labels": labels, "figures": figures, "time_unit": time_unit}
        text = json_text({**index, "grids": grids, **more}, sort_keys=False)
        self._here()
        with writing(self.root):
            put_file(text.encode(), self.root / "index.json", within=self.root)

    def index(self) -> dict[str, Any]:
        """The index that `write_index` wrote, empty without one; an `InputError` if it is damaged or not ours."""
        path = self.root / "index.json"
        return read_document(Index, path) if path.exists() else {}

    def entries(self, *, whole: bool = True, index: Mapping[str, Any] | None = None) -> list[Entry]:
        """The runs of an index that are there, in its order; every run that is there where there is no index.

        By default the index is the one that is there; another has ``runs`` and ``grids``, as of `write_index`.
        Manifests have all that they say if they are wanted ``whole``, or, to save memory, the swept values and the
        names of users' own metrics alone. Equal parts of them are the same objects. Raises `InputError` if one is
        damaged.
        """
        index = self.index() if index is None else index
        there = sorted(path.parent.name for path in self.root.glob("*/manifest.json"))
        wanted = index.get("runs", there)
        grids = index.get("grids") or [None] * len(wanted)
        read, shared = {}, Shared()
        for name in set(wanted):
            if (self.root / name).is_dir():
                manifest, checksums = run_folder.read_manifest(self._run(name))
                read[name] = shared.of(manifest if whole else _placed(manifest)), checksums
        found, met = [], Counter()
        for name, grid in zip(wanted, grids, strict=True):
            if name in read:
                met[name] += 1
                manifest, checksums = read[name]
                placed = manifest if grid is None else {**manifest, "grid": grid}
                run = name if met[name] == 1 else f"{name}#{met[name]}"
                found.append(Entry(run, self.root / name, placed, checksums))
        return found

    def consolidate(self) -> bool:
        """Copy the runs of the index into one dataset (`hushnet.simulator.storage.dataset`); False if it is there.

        Its bytes depend on the runs and the index alone, not on the order in which the runs came.
        """
        self._here()
        with writing(self.root):
            return dataset.write(self.root / "dataset", self.entries(whole=False), self.index().get("style"))

    def _run(self, name: str) -> Path:
        no_links(self.root / name, self.root)
        return self.root / name

    def _graph(self, name: str) -> Path:
        no_links(self.root / "graphs", self.root)
        return self.root / "graphs" / f"{name}.parquet"

    def _here(self) -> None:
        """See that what is written next goes where it belongs."""
        if self.token is None:
            ownership.claim(self.root)
        else:
            ownership.check_still(self.root, self.token)

    def _rescued(self, stray: Path) -> bool:
        """Put a stray in its place if it is a whole run that is not there otherwise."""
        match = STRAY.fullmatch(stray.name)
        if (
            match is None
            or run_folder.state(stray) != "complete"
            or run_folder.state(self.root / match["name"]) == "complete"
        ):
            return False
        remove(self.root / match["name"])
        stray.rename(self.root / match["name"])
        sync(self.root)
        return True


def _placed(manifest: dict[str, Any]) -> dict[str, Any]:
    return {name: manifest.get(name) for name in ("grid", "own_metrics")}


def _is_graph(path: Path) -> bool:
    """True if a graph's file has the edges whose hash is its name."""
    try:
        return edges_hash(read_table(path)) == path.stem
    except (InputError, KeyError):
        return False
