"""Worker processes for the DataLoader: each fetches every n-th batch, and the batches come back in order."""
from __future__ import annotations

import multiprocessing
import os
import queue
import random
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from multiprocessing import connection
from typing import Any

from ...arrays.random import default_generator
from .dataset import fetch_all

_LOOK_FOR_PARENT = 5.0  # seconds after which a worker without work looks whether its parent still lives


class WorkerInfo:
    """What a worker process knows of itself."""

    def __init__(self, id: int, num_workers: int, seed: int, dataset: Any) -> None:
        self.id, self.num_workers, self.seed, self.dataset = id, num_workers, seed, dataset

    def __repr__(self) -> str:
        return f"WorkerInfo(id={self.id}, num_workers={self.num_workers}, seed={self.seed}, dataset={self.dataset!r})"


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """About this worker process; None in the main process."""
    return _info


class Fetcher:
    """Makes a batch of what the sampler gave: of indices, or, of a stream, of the next so many samples."""

    def __init__(self, dataset: Any, is_stream: bool, in_batches: bool, collate: Callable[[Any], Any], drop_last: bool) -> None:
        self.dataset, self.in_batches, self.collate, self.drop_last = dataset, in_batches, collate, drop_last
        self.is_stream = is_stream
        self.restart()

    def restart(self) -> None:
        self.stream: Iterator[Any] | None = iter(self.dataset) if self.is_stream else None

    def fetch(self, index: Any) -> Any:
        if self.stream is None:
            return self.collate(fetch_all(self.dataset, index) if self.in_batches else self.dataset[index])
        if not self.in_batches:
            return self.collate(next(self.stream))
        samples = list(islice(self.stream, len(index)))
        if not samples or (self.drop_last and len(samples) < len(index)):
            raise StopIteration
        return self.collate(samples)


def _work(options: tuple, tasks: Any, results: Any, stopping: Any, base_seed: int, worker: int, count: int,
          prepare: Any) -> None:
    """The life of a worker: fetch what the tasks ask for until one of them is None."""
    global _info
    parent = os.getppid()
    seed = base_seed + worker
    random.seed(seed)
    default_generator.manual_seed(seed)
    import numpy.random
    # SeedSequence mixes the two as PyTorch does, so that NumPy's stream is the same in its workers and in these.
    numpy.random.seed(numpy.random.SeedSequence(
        [worker, base_seed & 0xFFFF_FFFF, base_seed >> 32, 0]).generate_state(4))
    _info = WorkerInfo(worker, count, seed, options[0])
    fetcher: Fetcher | None = None
    failed: Any = None
    try:
        if prepare is not None:
            prepare(worker)
        fetcher = Fetcher(*options)
    except Exception as error:
        failed = _described(error, worker)
    while True:
        try:
            task = tasks.get(timeout=_LOOK_FOR_PARENT)
        except queue.Empty:
            if os.getppid() != parent:
                return
            continue
        if task is None or stopping.is_set():
            return
        try:
            if failed is not None or fetcher is None:
                answer = "failed", failed
            elif task == "restart":
                fetcher.restart()
                continue
            else:
                answer = "batch", fetcher.fetch(task[0])
        except StopIteration:
            answer = "ended", None
        except Exception as error:
            answer = "failed", _described(error, worker)
        try:
            results.send(answer)
        except (BrokenPipeError, ConnectionError):
            return
        except Exception as error:  # the batch cannot be pickled
            results.send(("failed", _described(error, worker)))


def _described(error: Exception, worker: int) -> tuple[type, str]:
    text = "".join(traceback.format_exception(error))
    return type(error), f"Caught {type(error).__name__} in DataLoader worker process {worker}.\nOriginal {text}"


def _raise(kind: type, message: str) -> None:
    try:
        error = kind(message)
    except Exception:  # an exception that wants other arguments
        error = RuntimeError(message)
    raise error


class Workers:
    """The worker processes of one DataLoader, and the batches they owe."""

    def __init__(self, loader: Any, options: tuple, base_seed: int) -> None:
        context = loader.multiprocessing_context
        if context is None or isinstance(context, str):
            context = multiprocessing.get_context(context)
        self.timeout = loader.timeout or None
        self.stopping = context.Event()
        self.tasks: list[Any] = []
        self.results: list[Any] = []
        self.processes: list[Any] = []
        try:
            for worker in range(loader.num_workers):
                tasks, (ours, theirs) = context.Queue(), context.Pipe(duplex=False)
                process = context.Process(target=_work, daemon=True, args=(
                    options, tasks, theirs, self.stopping, base_seed, worker, loader.num_workers, loader.worker_init_fn))
                self.tasks.append(tasks)
                self.results.append(ours)
                process.start()
                self.processes.append(process)
                theirs.close()  # so that reading from a worker that died ends
        except BaseException:
            self.stop()
            raise

    def batches(self, indices: Iterator[Any], ahead: int) -> Iterator[Any]:
        """The batches in order. Each worker has up to `ahead` of them to do."""
        count = len(self.processes)
        active = set(range(count))
        owed: deque[int] = deque()  # which worker owes the next batch, the one after it, ...
        turn = 0

        def hand_out() -> None:
            nonlocal turn
            if not active:
                return
            while turn % count not in active:
                turn += 1
            for index in islice(indices, 1):
                self.tasks[turn % count].put((index,))
                owed.append(turn % count)
                turn += 1

        for _ in range(count * ahead):
            hand_out()
        while owed:
            worker = owed.popleft()
            kind, value = self._receive(worker)
            if worker not in active:
                continue  # asked for before it was known that its stream had ended
            if kind == "ended":
                active.remove(worker)
            hand_out()
            if kind == "batch":
                yield value
            elif kind == "failed":
                _raise(*value)

    def _receive(self, worker: int) -> tuple[str, Any]:
        try:
            if not self.results[worker].poll(self.timeout):
                raise RuntimeError(f"DataLoader timed out after {self.timeout} seconds")
            return self.results[worker].recv()
        except (EOFError, ConnectionError):
            self.processes[worker].join(1)
            raise RuntimeError(f"DataLoader worker (pid {self.processes[worker].pid}) exited unexpectedly with exit code "
                               f"{self.processes[worker].exitcode}") from None

    def restart(self) -> None:
        """Begin the stream again, for the next epoch."""
        for tasks in self.tasks:
            tasks.put("restart")

    def stop(self) -> None:
        self.stopping.set()
        for tasks in self.tasks:
            tasks.put(None)
        latest = time.monotonic() + _LOOK_FOR_PARENT
        for process, results in zip(self.processes, self.results):
            try:
                # A worker that is handing in a large batch cannot stop before someone has taken it.
                while results in connection.wait((results, process.sentinel), max(0.0, latest - time.monotonic())):
                    results.recv_bytes()
            except (EOFError, OSError):
                pass  # it has closed its end
            process.join(max(0.0, latest - time.monotonic()))
            if process.is_alive():
                process.terminate()
                process.join()
        for results in self.results:
            results.close()
        for tasks in self.tasks:
            tasks.cancel_join_thread()
            tasks.close()
        self.tasks, self.results, self.processes = [], [], []
