"""Datasets: by index or as a stream, and new ones made of others."""
from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import Any, Generic, TypeVar

from ...arrays.random import Generator, default_generator
from ...ops.randomness import randperm
from ...tensor import Tensor

Sample = TypeVar("Sample", covariant=True)


class Dataset(Generic[Sample]):
    """Samples by index. A subclass has `__getitem__`, and `__len__` wherever the length is needed."""

    def __getitem__(self, index: Any) -> Sample:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[Sample], Iterable[Sample]):
    """Samples as a stream. A subclass has `__iter__`."""

    def __add__(self, other: Dataset) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Sample i is the tuple of the i-th entries of some tensors."""

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensor.size(0) != tensors[0].size(0) for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple([tensor[index] for tensor in self.tensors])

    def __len__(self) -> int:
        return len(self.tensors[0])


class StackDataset(Dataset[Any]):
    """Sample i is the tuple, or the dict, of the i-th samples of some datasets."""

    def __init__(self, *args: Dataset, **kwargs: Dataset) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError("Supported either ``tuple``- (via ``args``) or ``dict``- (via ``kwargs``) like input/output, "
                             "but both types are given." if args else "At least one dataset should be passed")
        self.datasets: Any = args or kwargs
        lengths = {len(one) for one in (args or kwargs.values())}  # type: ignore[arg-type]
        if len(lengths) != 1:
            raise ValueError("Size mismatch between datasets")
        self._length = lengths.pop()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple([dataset[index] for dataset in self.datasets])

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[Sample]):
    """One dataset after the other."""

    def __init__(self, datasets: Iterable[Dataset]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = list(accumulate(len(dataset) for dataset in self.datasets))  # type: ignore[arg-type]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        if index < 0:
            index += len(self)
            if index < 0:
                raise ValueError("absolute value of index should not exceed dataset length")
        which = bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset):
    """One stream after the other."""

    def __init__(self, datasets: Iterable[Dataset]) -> None:
        self.datasets = datasets

    def _streams(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(self._streams())

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._streams())


class Subset(Dataset[Sample]):
    """The samples of a dataset that some indices choose."""

    def __init__(self, dataset: Dataset[Sample], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices
        kind = type(self)
        if kind.__getitem__ is not Subset.__getitem__ and kind.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(f"{kind.__name__} overrides __getitem__ but not __getitems__, which is what a DataLoader "
                                      "calls: override both.")

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return fetch_all(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def fetch_all(dataset: Any, indices: Iterable[Any]) -> Any:
    """Several samples: in one call where the dataset can, else one by one."""
    several = getattr(dataset, "__getitems__", None)
    return several(indices) if several else [dataset[index] for index in indices]


def random_split(dataset: Dataset[Sample], lengths: Sequence[int | float],
                 generator: Generator | None = default_generator) -> list[Subset[Sample]]:
    """Subsets of these lengths, or of these fractions that add up to 1, that share no sample."""
    total: int = len(dataset)  # type: ignore[arg-type]
    wanted = list(lengths)
    if sum(wanted) <= 1 and math.isclose(sum(wanted), 1):
        for place, fraction in enumerate(wanted):
            if not 0 <= fraction <= 1:
                raise ValueError(f"Fraction at index {place} is not between 0 and 1")
        wanted = [math.floor(total * fraction) for fraction in wanted]
        for left in range(total - int(sum(wanted))):
            wanted[left % len(wanted)] += 1  # what rounding left over goes round
        for place, length in enumerate(wanted):
            if not length:
                warnings.warn(f"Length of split at index {place} is 0. This might result in an empty dataset.", stacklevel=2)
    if sum(wanted) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = iter(randperm(total, generator=generator).tolist())
    return [Subset(dataset, [next(order) for _ in range(int(length))]) for length in wanted]
