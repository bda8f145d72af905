"""Devices: the value type against real torch.device, and the refusal of what is not the CPU."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from rushlight.arrays.devices import CPU, DEVICE_TYPES, device, require_cpu

torch = pytest.importorskip("torch", reason="the behaviour compared with is real torch's")

GOOD = [
    *[(name,) for name in DEVICE_TYPES],
    ("cpu:0",),
    ("cpu:1",),
    ("cuda:0",),
    ("cuda:127",),
    ("cpu", 0),
    ("cuda", 1),
    ("cuda", None),
    ("mps", 3),
    ("cuda", np.int64(2)),
]


@pytest.mark.filterwarnings("ignore:'mkldnn' is no longer used")
@pytest.mark.parametrize("arguments", GOOD, ids=str)
def test_named_as_in_torch(arguments):
    mine, theirs = device(*arguments), torch.device(*arguments)
    assert (mine.type, mine.index) == (theirs.type, theirs.index)
    assert (repr(mine), str(mine), f"{mine}") == (repr(theirs), str(theirs), f"{theirs}")
    for same in [device(mine), copy.deepcopy(mine), pickle.loads(pickle.dumps(mine))]:
        assert same == mine and hash(same) == hash(mine)


KEYWORDS = [{"type": "cuda"}, {"type": "cuda", "index": 1}, {"device": "cpu"}, {"type": "cpu", "index": None}]


@pytest.mark.parametrize("arguments", KEYWORDS, ids=str)
def test_keywords(arguments):
    assert repr(device(**arguments)) == repr(torch.device(**arguments))


BAD_STRINGS = ["foo", "", "cuda:", "cuda:-1", "cpu:01", "cuda:1:2", "cpu:x", "CPU", " cpu", "cuda :0", ":0", "cuda0"]


@pytest.mark.parametrize("text", BAD_STRINGS)
def test_bad_strings_raise_torchs_words(text):
    with pytest.raises(RuntimeError) as expected:
        torch.device(text)
    with pytest.raises(RuntimeError) as raised:
        device(text)
    assert str(raised.value) == str(expected.value)


@pytest.mark.parametrize(
    ("arguments", "opening"),
    [
        (("cuda:0", 1), "type (string) must not include an index"),
        (("cuda", -1), "Device index must not be negative"),
        ((-1,), "Device index must not be negative"),
        ((0,), "Cannot access accelerator device when none is available."),
        (("foo", 0), "Expected one of cpu, cuda,"),
        (("cuda:99999999999",), "Could not parse device index '99999999999' in device string"),
        (("cuda", 1.5), "device(): argument 'index' (position 2) must be int, not float"),
        (("cuda", True), "device(): argument 'index' (position 2) must be int, not bool"),
        ((1, 2), "device(): argument 'type' (position 1) must be str, not int"),
        ((1.5,), "device() received an invalid combination of arguments"),
        ((True,), "device() received an invalid combination of arguments"),
        ((None,), "device() received an invalid combination of arguments"),
        ((), "device() received an invalid combination of arguments"),
    ],
    ids=str,
)
def test_bad_arguments_raise_torchs_type_and_opening(arguments, opening):
    with pytest.raises((RuntimeError, TypeError)) as expected:
        torch.device(*arguments)
    assert str(expected.value).startswith(opening)
    with pytest.raises(expected.type) as raised:
        device(*arguments)
    assert str(raised.value).startswith(opening)


@pytest.mark.parametrize("arguments", [("cuda:128",), ("cuda:256",), ("cuda", 128)], ids=str)
def test_an_index_torch_would_wrap_is_refused(arguments):
    with pytest.raises(RuntimeError, match="127"):
        device(*arguments)


def test_comparison():
    devices = [device("cpu"), device("cpu:0"), device("cuda"), device("cuda:0"), device("cuda:1")]
    theirs = [torch.device(str(one)) for one in devices]
    for mine_row, their_row in zip(devices, theirs):
        for mine, their in zip(devices, theirs):
            assert (mine_row == mine) == (their_row == their)
            assert (mine_row != mine) == (their_row != their)
    assert len(set(devices) | {device("cuda", 1)}) == len(devices)
    assert (devices[0] == "cpu") is (theirs[0] == "cpu") is False
    with pytest.raises(TypeError):
        sorted(devices)


def test_immutable_and_final():
    for name in ("type", "index", "other"):
        with pytest.raises(AttributeError):
            setattr(device("cpu"), name, "cuda")
    with pytest.raises(TypeError, match="is not an acceptable base type"):
        type("Sub", (device,), {})


@pytest.mark.parametrize("asked", [None, "cpu", "cpu:0", "cpu:3", device("cpu"), device("cpu", 1)], ids=str)
def test_the_cpu_is_granted_without_index(asked):
    for_torch = torch.device(str(asked)) if isinstance(asked, device) else asked
    assert require_cpu(asked) is CPU
    assert repr(require_cpu(asked)) == repr(torch.zeros(1, device=for_torch).device)


@pytest.mark.parametrize("asked", ["cuda", "cuda:1", "mps", "xla"])
def test_other_devices_raise_torchs_exception_type(asked):
    if torch.backends.cuda.is_built() or torch.backends.mps.is_built():
        pytest.skip("compared with a CPU build of torch")
    with pytest.raises((AssertionError, RuntimeError)) as expected:
        torch.zeros(1, device=asked)
    for form in (asked, device(asked)):
        with pytest.raises(expected.type, match=f"Rushlight runs on the CPU only, .*'{asked}'"):
            require_cpu(form)


def test_what_is_no_device_is_refused():
    with pytest.raises(RuntimeError, match="^Cannot access accelerator device when none is available"):
        require_cpu(0)
    with pytest.raises(RuntimeError, match="^Expected one of cpu, cuda,"):
        require_cpu("gpu")
    for wrong in (1.5, True, ["cpu"]):
        with pytest.raises(TypeError, match="argument 'device' must be torch.device, not "):
            require_cpu(wrong)


def test_as_context_manager():
    with device("cpu") as entered:
        assert entered == CPU
    with pytest.raises(AssertionError, match="CPU only"), device("cuda"):
        pass
    with pytest.raises(KeyError), device("cpu"):
        raise KeyError  # an error inside the block is not swallowed
