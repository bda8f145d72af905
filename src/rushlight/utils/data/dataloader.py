"""DataLoader: batches of a dataset, in PyTorch's order for the same seed."""
from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any, Generic, TypeVar

from ...arrays.random import Generator
from .collate import default_collate, default_convert
from .dataset import Dataset, IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, fresh_seed
from .workers import Fetcher, Workers

Batch = TypeVar("Batch", covariant=True)
_FIXED = frozenset(("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"))


class _Endless(Sampler[None]):
    """Stands for the indices of a stream, which has none."""

    def __iter__(self) -> Iterator[None]:
        return repeat(None)


class DataLoader(Generic[Batch]):
    """Iterate over a dataset in batches. With num_workers, other processes fetch them; their order stays the same."""

    _initialized = False
    _promised: int | None = None  # what the length of a stream was said to be

    def __init__(self, dataset: Dataset[Any], batch_size: int | None = 1, shuffle: bool | None = None,
                 sampler: Sampler | Iterable | None = None, batch_sampler: Sampler[list] | Iterable[list] | None = None,
                 num_workers: int = 0, collate_fn: Callable[[list[Any]], Any] | None = None, pin_memory: bool = False,
                 drop_last: bool = False, timeout: float = 0, worker_init_fn: Callable[[int], None] | None = None,
                 multiprocessing_context: Any = None, generator: Generator | None = None, *,
                 prefetch_factor: int | None = None, persistent_workers: bool = False, pin_memory_device: str = "",
                 in_order: bool = True) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self._is_stream = isinstance(dataset, IterableDataset)
        _check_sampling(self._is_stream, batch_size, shuffle, sampler, batch_sampler, drop_last)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self.generator = generator
        self.persistent_workers = persistent_workers
        if sampler is None:
            if self._is_stream:
                sampler = _Endless()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)  # type: ignore[arg-type]
            else:
                sampler = SequentialSampler(dataset)  # type: ignore[arg-type]
        if batch_sampler is not None:
            batch_size = None
        elif batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)  # type: ignore[arg-type]
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        if collate_fn is None:
            collate_fn = default_convert if batch_sampler is None else default_collate
        self.collate_fn = collate_fn
        self._workers: Workers | None = None
        self._initialized = True

    def __setattr__(self, name: str, value: Any) -> None:
        if self._initialized and name in _FIXED:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    def __iter__(self) -> Iterator[Any]:
        if self.pin_memory:
            warnings.warn("'pin_memory' argument is set as true but no accelerator is found, then device pinned memory "
                          "won't be used.", stacklevel=2)
        indices = iter(self.sampler if self.batch_sampler is None else self.batch_sampler)
        # As in PyTorch it is drawn whether there are workers or not, but not for workers that have one already.
        base_seed = 0 if self._workers else fresh_seed(self.generator)
        options = self.dataset, self._is_stream, self.batch_sampler is not None, self.collate_fn, self.drop_last
        batches = self._by_workers(indices, options, base_seed) if self.num_workers else _here(indices, Fetcher(*options))
        return self._counted(batches) if self._is_stream else batches

    def _counted(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Warn where a stream has more batches than its dataset said."""
        for number, batch in enumerate(batches, 1):
            if self._promised is not None and number > self._promised:
                warnings.warn(f"Length of IterableDataset {self.dataset} was reported to be {self._promised} by len(dataloader), "
                              f"but {number} have been fetched by now.", stacklevel=2)
            yield batch

    def _by_workers(self, indices: Iterator[Any], options: tuple, base_seed: int) -> Iterator[Any]:
        """Starts at the first batch; the workers stop at the end, or when the iterator is dropped."""
        workers, self._workers = self._workers, None
        if workers is None:
            workers = Workers(self, options, base_seed)
        else:
            workers.restart()
        finished = False
        try:
            yield from workers.batches(indices, max(1, self.prefetch_factor or 1))
            finished = True
        finally:
            if finished and self.persistent_workers:
                self._workers = workers
            else:
                workers.stop()

    def __len__(self) -> int:
        if not self._is_stream:
            return len(self.sampler if self.batch_sampler is None else self.batch_sampler)  # type: ignore[arg-type]
        count: int = len(self.dataset)  # type: ignore[arg-type]
        self._promised = count
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def __del__(self) -> None:
        if self._initialized and self._workers is not None:
            self._workers.stop()


def _here(indices: Iterator[Any], fetcher: Fetcher) -> Iterator[Any]:
    """The batches, fetched by this process."""
    for index in indices:
        try:
            batch = fetcher.fetch(index)
        except StopIteration:
            return
        yield batch


def _check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool) -> None:
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if prefetch_factor is not None and not num_workers:
        raise ValueError("prefetch_factor option could only be specified in multiprocessing: there are no workers to look "
                         "ahead. Set num_workers > 0 or leave prefetch_factor out.")
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and not num_workers:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_sampling(is_stream: bool, batch_size: Any, shuffle: Any, sampler: Any, batch_sampler: Any, drop_last: Any) -> None:
    """Refuse options that contradict each other."""
    if is_stream:
        for name, value in (("shuffle", shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler)):
            if value is not None:
                raise ValueError(f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}")
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
        raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
    if batch_sampler is None and batch_size is None and drop_last:
        raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
