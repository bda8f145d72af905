"""Datasets, samplers and DataLoader: the same samples in the same order as PyTorch, for the same seed."""
from __future__ import annotations

import collections
import random
import warnings
from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch", reason="the order of real torch is the expectation")
ENGINES = (torch, rushlight)
Point = collections.namedtuple("Point", ["x", "y"])


def plain(value: Any) -> Any:
    """Tensors as (dtype, values), so that two engines' batches can be compared."""
    if isinstance(value, (torch.Tensor, rushlight.Tensor)):
        return str(value.dtype), value.tolist()
    if isinstance(value, dict):
        return type(value).__name__, {key: plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [plain(one) for one in value]
    return value


def both(function: Any) -> None:
    """The function gives the same on both engines, from the same seed, and leaves the stream at the same place."""
    found = []
    for engine in ENGINES:
        engine.manual_seed(7)
        result = plain(function(engine))
        found.append((result, engine.rand(1).item()))
    assert found[0] == found[1]


def pairs(engine: Any, count: int = 23) -> Any:
    return engine.utils.data.TensorDataset(engine.arange(count), engine.arange(count).double() / 2)


@pytest.mark.parametrize("options", [
    {}, {"batch_size": 4}, {"batch_size": 4, "shuffle": True}, {"batch_size": 4, "shuffle": True, "drop_last": True},
    {"batch_size": None}, {"batch_sampler": [[0, 5], [3]]}, {"sampler": [4, 2], "batch_size": 2},
    {"batch_size": 5, "shuffle": True, "num_workers": 2},
    {"batch_size": 5, "collate_fn": lambda samples: [int(a) for a, _ in samples]},
], ids=lambda options: ", ".join(options))
def test_loader_order(options):
    def run(engine):
        loader = engine.utils.data.DataLoader(pairs(engine), **options)
        return [len(loader), list(loader), list(loader)]  # two epochs: the second has another order

    both(run)


def test_loader_with_its_own_generator():
    both(lambda engine: list(engine.utils.data.DataLoader(
        pairs(engine), batch_size=3, shuffle=True, generator=engine.Generator().manual_seed(5))))


@pytest.mark.parametrize("make", [
    lambda data: data.RandomSampler(range(10)),
    lambda data: data.RandomSampler(range(10), replacement=True, num_samples=70),
    lambda data: data.RandomSampler(range(10), replacement=True, num_samples=64),
    lambda data: data.RandomSampler(range(10), num_samples=25),
    lambda data: data.RandomSampler(range(10), num_samples=20),
    lambda data: data.WeightedRandomSampler([0.1, 0.5, 0.4], 9),
    lambda data: data.WeightedRandomSampler([0.1, 0.5, 0.4], 2, replacement=False),
    lambda data: data.SubsetRandomSampler([5, 6, 7, 8]),
    lambda data: data.SequentialSampler("abc"),
    lambda data: data.BatchSampler(data.RandomSampler(range(10)), 3, True),
    lambda data: data.BatchSampler(range(10), 3, False),
])  # fmt: skip
def test_samplers(make):
    both(lambda engine: [len(make(engine.utils.data)), list(make(engine.utils.data))])


@pytest.mark.filterwarnings("ignore:Length of split")
@pytest.mark.parametrize("lengths", [[3, 7], [0.35, 0.35, 0.3], [0.5, 0.5], [0.95, 0.05, 0.0], [10]])
def test_random_split(lengths):
    both(lambda engine: [one.indices for one in engine.utils.data.random_split(range(10), lengths)])
    both(lambda engine: [list(engine.utils.data.DataLoader(one, batch_size=2)) for one in engine.utils.data.random_split(
        pairs(engine, 10), lengths, engine.Generator().manual_seed(1)) if len(one)])


def test_datasets_of_datasets():
    def run(engine):
        data = engine.utils.data
        joined = pairs(engine, 3) + data.Subset(pairs(engine, 9), [8, 1])
        stacked = data.StackDataset(a=pairs(engine, 3), b=range(3))
        return [len(joined), [joined[i] for i in range(-5, 5)], [stacked[i] for i in range(len(stacked))]]

    both(run)


def stream(engine: Any, count: int, split: bool = False) -> Any:
    class Stream(engine.utils.data.IterableDataset):
        def __iter__(self):
            info = engine.utils.data.get_worker_info()
            step, start = (info.num_workers, info.id) if split and info else (1, 0)
            return iter(range(start, count, step))

    return Stream()


@pytest.mark.parametrize("options", [{}, {"batch_size": 3}, {"batch_size": 3, "drop_last": True}, {"batch_size": None}])
@pytest.mark.parametrize("workers", [0, 2])
def test_streams(options, workers):
    both(lambda engine: list(engine.utils.data.DataLoader(stream(engine, 10, True), num_workers=workers, **options)))


def test_chained_streams():
    both(lambda engine: list(engine.utils.data.DataLoader(stream(engine, 3) + stream(engine, 2), batch_size=2)))


def noisy(engine: Any) -> Any:
    """A dataset that draws from all three random streams."""
    class Noisy(engine.utils.data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, index):
            return index, engine.rand(1).item(), random.random(), np.random.rand()

    return Noisy()


@pytest.mark.parametrize("persistent", [False, True])
def test_workers_draw_what_pytorchs_draw(persistent):
    def run(engine):
        loader = engine.utils.data.DataLoader(noisy(engine), batch_size=2, num_workers=2, persistent_workers=persistent)
        return [list(loader), list(loader)]

    both(run)


def test_worker_init_function():
    def run(engine):
        dataset = noisy(engine)
        loader = engine.utils.data.DataLoader(dataset, num_workers=2, worker_init_fn=lambda worker: engine.manual_seed(worker))
        return [batch[1] for batch in loader]

    both(run)


def test_an_error_in_a_worker_keeps_its_type(raises):
    class Failing(rushlight.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            raise ValueError("bad sample")

    # The words are PyTorch's; it is not run here, since its loader then takes five seconds to let its worker go.
    with raises(ValueError, "Caught ValueError in DataLoader worker process 0."):
        list(rushlight.utils.data.DataLoader(Failing(), num_workers=1))


def test_a_dead_worker_is_noticed(raises):
    class Dying(rushlight.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            import os
            os._exit(3)

    with raises(RuntimeError, "DataLoader worker (pid"):
        list(rushlight.utils.data.DataLoader(Dying(), num_workers=1))


@pytest.mark.parametrize("width", [1, 500_000])  # small batches, and such as fill the pipe they come through
def test_an_abandoned_iterator_ends_its_workers(width):
    import multiprocessing
    before = set(multiprocessing.active_children())
    iterator = iter(rushlight.utils.data.DataLoader([rushlight.zeros(width)] * 20, num_workers=2))
    next(iterator)
    assert len(set(multiprocessing.active_children()) - before) == 2
    del iterator
    assert set(multiprocessing.active_children()) <= before


@pytest.mark.parametrize("samples", [
    [1, 2], [1.5, 2.5], [True, False], ["a", "b"], [b"a", b"b"], [(1, 2.0), (3, 4.0)], [[1, 2], [3, 4]],
    [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}], [Point(1, 2.0), Point(3, 4.0)],
    [collections.OrderedDict(a=1), collections.OrderedDict(a=2)],
    [np.float32(1), np.float32(2)], [np.float64(1), np.float64(2)], [np.int32(1), np.int32(2)], [np.bool_(True), np.bool_(False)],
    [np.ones(2), np.zeros(2)], [np.array(1), np.array(2)], [np.ones(2, np.float32), np.zeros(2, np.float32)],
    [{"a": [(np.ones(1), "t")]}, {"a": [(np.zeros(1), "u")]}], [range(2), range(2)],
], ids=str)  # fmt: skip
def test_default_collate(samples):
    both(lambda engine: engine.utils.data.default_collate(samples))


def test_default_collate_keeps_the_graph():
    for engine in ENGINES:
        x = engine.ones(2, requires_grad=True)
        engine.utils.data.default_collate([x, x * 2]).sum().backward()
        assert x.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("data", [np.ones(2), [np.ones(1), 3], {"a": np.zeros(1)}, Point(np.ones(1), 2), (1, np.ones(1)),
                                  "text", 4, np.array(["a"]), np.float32(2)], ids=str)
def test_default_convert(data):
    both(lambda engine: engine.utils.data.default_convert(data))


@pytest.mark.parametrize("call", [
    lambda e: e.utils.data.DataLoader(pairs(e), batch_size=0),
    lambda e: e.utils.data.DataLoader(pairs(e), batch_size=2.0),
    lambda e: e.utils.data.DataLoader(pairs(e), num_workers=-1),
    lambda e: e.utils.data.DataLoader(pairs(e), prefetch_factor=2),
    lambda e: e.utils.data.DataLoader(pairs(e), persistent_workers=True),
    lambda e: e.utils.data.DataLoader(pairs(e), shuffle=True, sampler=[1]),
    lambda e: e.utils.data.DataLoader(pairs(e), batch_size=2, batch_sampler=[[1]]),
    lambda e: e.utils.data.DataLoader(pairs(e), batch_size=None, drop_last=True),
    lambda e: e.utils.data.DataLoader(stream(e, 3), shuffle=True),
    lambda e: e.utils.data.DataLoader(stream(e, 3), sampler=[1]),
    lambda e: e.utils.data.DataLoader([], shuffle=True),
    lambda e: len(e.utils.data.DataLoader(stream(e, 3))),
    lambda e: setattr(e.utils.data.DataLoader(pairs(e)), "batch_size", 3),
    lambda e: e.utils.data.RandomSampler(range(3), num_samples=0),
    lambda e: e.utils.data.RandomSampler(range(3), replacement=1),
    lambda e: e.utils.data.WeightedRandomSampler([[1.0]], 3),
    lambda e: e.utils.data.WeightedRandomSampler([1.0], 0),
    lambda e: e.utils.data.BatchSampler(range(3), 0, False),
    lambda e: e.utils.data.BatchSampler(range(3), 1, 1),
    lambda e: e.utils.data.random_split(range(3), [1, 1]),
    lambda e: e.utils.data.random_split(range(3), [1.5, -0.5]),
    lambda e: e.utils.data.TensorDataset(e.ones(2), e.ones(3)),
    lambda e: e.utils.data.ConcatDataset([]),
    lambda e: e.utils.data.ConcatDataset([range(3)])[-4],
    lambda e: e.utils.data.Dataset()[0],
    lambda e: e.utils.data.default_collate([object()]),
    lambda e: e.utils.data.default_collate([[1], [1, 2]]),
    lambda e: e.utils.data.default_collate([np.array(["a"])]),
    lambda e: e.utils.data.default_collate([e.ones(2), e.ones(3)]),
])
def test_errors(call, same_error):
    same_error(call, words=5)


def test_pin_memory_warns_as_there_is_none():
    for engine in ENGINES:
        with pytest.warns(UserWarning, match="'pin_memory' argument is set as true but no accelerator"):
            list(engine.utils.data.DataLoader(pairs(engine), pin_memory=True))


def test_a_stream_longer_than_promised_warns():
    for engine in ENGINES:
        class Stream(engine.utils.data.IterableDataset):
            def __len__(self):
                return 2

            def __iter__(self):
                return iter(range(3))

        loader = engine.utils.data.DataLoader(Stream())
        assert len(loader) == 2
        with pytest.warns(UserWarning, match="Length of IterableDataset"):
            assert len(list(loader)) == 3


def test_datasets_can_be_subscripted_in_annotations():
    class Typed(rushlight.utils.data.Dataset[int]):
        pass

    assert issubclass(Typed, rushlight.utils.data.Dataset)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(rushlight.utils.data.DataLoader([1, 2], batch_size=2))[0].tolist() == [1, 2]
