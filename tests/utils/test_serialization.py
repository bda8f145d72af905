"""torch.save and torch.load: files go from PyTorch to Rushlight and back, and damaged ones are refused."""
from __future__ import annotations

import collections
import io
import os
import pickle
import random
import stat
from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch", reason="files are exchanged with real torch")
DTYPES = ("float16", "float32", "float64", "complex64", "complex128", "int8", "int16", "int32", "int64", "uint8", "uint16",
          "uint32", "uint64", "bool")
WAYS = [(rushlight, rushlight), (torch, rushlight), (rushlight, torch)]
WAY_NAMES = ["here", "from torch", "to torch"]


def saved(engine: Any, obj: Any, **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    engine.save(obj, file, **options)
    file.seek(0)
    return file


def example(engine: Any) -> dict[str, Any]:
    x = engine.arange(12.0).reshape(3, 4)
    return {
        "matrix": x, "rows": x[1:], "columns": x[:, ::2], "turned": x.t(), "expanded": engine.ones(1).expand(3),
        "empty": engine.zeros(0, 3), "scalar": engine.tensor(3), "leaf": engine.ones(2, requires_grad=True),
        "parameter": engine.nn.Parameter(engine.ones(2)), "frozen": engine.nn.Parameter(engine.ones(1), requires_grad=False),
        "shape": x.shape, "dtype": x.dtype, "device": x.device,
        "others": [1, -2.5, "text", None, True, (1, (2,)), {1, 2}, 1j, b"bytes", 10**30, collections.OrderedDict(a=1)],
    }  # fmt: skip


def described(value: Any) -> Any:
    if isinstance(value, (torch.Tensor, rushlight.Tensor)):
        return (type(value).__name__, str(value.dtype), tuple(value.shape), value.stride(), value.requires_grad,
                value.detach().tolist())
    if isinstance(value, dict):
        return {key: described(one) for key, one in value.items()}
    return str(value)


@pytest.mark.parametrize(("writer", "reader"), WAYS, ids=WAY_NAMES)
def test_round_trip(writer, reader):
    assert described(reader.load(saved(writer, example(writer)))) == described(example(torch))


@pytest.mark.parametrize(("writer", "reader"), WAYS, ids=WAY_NAMES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(writer, reader, dtype):
    made = writer.tensor([0, 1, 1, 0, 1]).to(getattr(writer, dtype))
    loaded = reader.load(saved(writer, made))
    assert loaded.dtype is getattr(reader, dtype)
    assert loaded.tolist() == made.tolist()


@pytest.mark.parametrize(("writer", "reader"), WAYS, ids=WAY_NAMES)
def test_bfloat16(writer, reader):
    pytest.importorskip("ml_dtypes", reason="bfloat16 needs ml_dtypes")
    loaded = reader.load(saved(writer, writer.tensor([1.5, -2.0]).to(writer.bfloat16)))
    assert loaded.dtype is reader.bfloat16
    assert loaded.float().tolist() == [1.5, -2.0]


@pytest.mark.parametrize(("writer", "reader"), WAYS, ids=WAY_NAMES)
def test_shared_memory_is_shared_again(writer, reader):
    x = writer.zeros(4)
    first, second, part = reader.load(saved(writer, [x, x, x[2:]]))
    assert first is second
    first.fill_(1.0)
    assert part.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(("writer", "reader"), WAYS, ids=WAY_NAMES)
def test_attributes_of_tensors_are_kept(writer, reader):
    x, p = writer.ones(1), writer.nn.Parameter(writer.ones(1))
    x.tag, p.tag = "mine", [1]
    loaded = reader.load(saved(writer, [x, p]))
    assert [one.tag for one in loaded] == ["mine", [1]]


def trained(engine: Any, state: Any = None, steps: int = 2) -> tuple[Any, Any, Any]:
    engine.manual_seed(0)
    model = engine.nn.Sequential(engine.nn.Linear(3, 4), engine.nn.BatchNorm1d(4), engine.nn.Linear(4, 1))
    optimizer = engine.optim.Adam(model.parameters(), lr=0.1, amsgrad=True)
    if state is not None:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    x = engine.linspace(-1, 1, 15).reshape(5, 3)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
    return model, optimizer, loss.item()


@pytest.mark.parametrize(("writer", "reader"), WAYS, ids=WAY_NAMES)
def test_training_resumes_from_a_checkpoint(writer, reader):
    model, optimizer, _ = trained(writer)
    checkpoint = saved(writer, {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 2})
    state = reader.load(checkpoint)
    assert state["epoch"] == 2
    assert state["model"]._metadata[""] == {"version": 1}
    assert trained(reader, state, steps=3)[2] == pytest.approx(trained(torch, steps=5)[2], rel=1e-4)


class Box:
    """Something only weights_only=False may load."""

    def __init__(self, value: Any) -> None:
        self.value = value


def test_whole_modules_need_weights_only_false(raises):
    model = trained(rushlight)[0].eval()
    file = saved(rushlight, model)
    with raises(pickle.UnpicklingError, "Weights only load failed."):
        rushlight.load(file)
    file.seek(0)
    x = rushlight.ones(2, 3)
    assert rushlight.load(file, weights_only=False)(x).tolist() == model(x).tolist()


def test_weights_only_refuses_what_could_run_code(same_error):
    for value in (Box(1), np.float64(2), os.system, collections.deque([1])):
        same_error(lambda engine, value=value: engine.load(saved(engine, {"a": value})), words=4)


def test_safe_globals():
    for engine in (torch, rushlight):
        with engine.serialization.safe_globals([Box]):
            assert engine.load(saved(engine, Box(3))).value == 3
        with pytest.raises(pickle.UnpicklingError):
            engine.load(saved(engine, Box(3)))


def forged(pickled: bytes) -> io.BytesIO:
    import zipfile
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
        archive.writestr("archive/version", "3\n")
    file.seek(0)
    return file


@pytest.mark.parametrize("pickled", [
    b"\x80\x02cos\nsystem\nX\x05\x00\x00\x00false\x85R.",
    b"\x80\x02ctorch\nfloat32\n}X\x04\x00\x00\x00nameX\x01\x00\x00\x00xsb.",  # state for a dtype that everyone shares
    b"\x80\x02ctorch\nfloat32\nN}X\x04\x00\x00\x00nameX\x01\x00\x00\x00xs\x86b.",
    b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n}X\x0c\x00\x00\x00__defaults__)sb.",
    b"\x80\x02cbuiltins\neval\nX\x01\x00\x00\x001\x85R.",
    b"\x80\x02X\x05\x00\x00\x00wrongQ.",
    b"\x80\x02",
    b"nonsense",
])  # fmt: skip
def test_forged_files_are_refused_and_change_nothing(pickled):
    with pytest.raises((pickle.UnpicklingError, RuntimeError)):
        rushlight.load(forged(pickled))
    assert rushlight.float32.name == "float32"


def test_damage_is_noticed():
    """Whatever is cut off or changed: an error, or what was saved, and never other numbers."""
    whole = saved(rushlight, example(rushlight)).getvalue()
    expected = described(example(torch))
    choose = random.Random(0)
    refused = 0
    for turn in range(300):
        damaged = bytearray(whole)
        if turn % 2:
            del damaged[choose.randrange(len(damaged)):]
        else:
            damaged[choose.randrange(len(damaged))] ^= 1 << choose.randrange(8)
        try:
            loaded = rushlight.load(io.BytesIO(bytes(damaged)))
        except (RuntimeError, pickle.UnpicklingError, EOFError):
            refused += 1
        else:
            assert described(loaded) == expected
    assert refused > 200


@pytest.mark.parametrize(("content", "error"), [
    (b"", EOFError), (b"just some text", pickle.UnpicklingError), (pickle.dumps({"a": 1}), pickle.UnpicklingError),
    (saved(torch, [1], _use_new_zipfile_serialization=False).getvalue(), pickle.UnpicklingError),
    (saved(torch, torch.nn.Linear(2, 2)).getvalue(), pickle.UnpicklingError),
    (saved(torch, torch.ones(2).to_sparse()).getvalue(), pickle.UnpicklingError),
    (saved(torch, torch.ones(2, dtype=torch.complex64).conj()).getvalue(), pickle.UnpicklingError),
    (forged(b"N.").getvalue().replace(b"data.pkl", b"other.pk"), RuntimeError),
], ids=["empty", "text", "pickle", "old format", "module", "sparse", "conjugated", "another zip"])  # fmt: skip
def test_foreign_files_are_refused(content, error):
    with pytest.raises(error):
        rushlight.load(io.BytesIO(content))


def test_truncated_files_read_as_in_torch(same_error):
    whole = saved(torch, torch.ones(3)).getvalue()
    same_error(lambda engine: engine.load(io.BytesIO(whole[:-50])), words=6)


def test_map_location(same_error):
    x = rushlight.ones(2)
    for place in (None, "cpu", rushlight.device("cpu"), {"cpu": "cpu"}, lambda storage, location: storage,
                  lambda storage, location: None):
        assert rushlight.load(saved(rushlight, x), map_location=place).tolist() == [1.0, 1.0]
    same_error(lambda engine: engine.load(saved(engine, engine.ones(2)), map_location="cuda"), words=9)


def test_computed_tensors_load_as_leaves():
    for engine in (torch, rushlight):
        loaded = engine.load(saved(engine, engine.ones(2, requires_grad=True) * 2))
        assert loaded.is_leaf and loaded.requires_grad and loaded.tolist() == [2.0, 2.0]


# -- paths ----------------------------------------------------------------------------------------------------------
def test_paths_as_text_and_as_path(tmp_path):
    for path in (tmp_path / "a.pt", str(tmp_path / "b.pt")):
        rushlight.save({"a": rushlight.ones(2)}, path)
        assert torch.load(path)["a"].tolist() == rushlight.load(path)["a"].tolist() == [1.0, 1.0]


def test_errors_with_paths(tmp_path, same_error):
    same_error(lambda engine: engine.load(tmp_path / "absent.pt"), words=3)
    same_error(lambda engine: engine.save(1, tmp_path / "absent" / "file.pt"))
    same_error(lambda engine: engine.save(1, 3), words=4)


@pytest.mark.parametrize("failure", [KeyboardInterrupt, ValueError])
def test_an_interrupted_save_loses_nothing(tmp_path, failure):
    class Interrupting:
        def __reduce__(self):
            raise failure

    path = tmp_path / "model.pt"
    rushlight.save({"a": 1}, path)
    with pytest.raises(failure):
        rushlight.save({"a": 2, "b": Interrupting()}, path)
    assert rushlight.load(path) == {"a": 1}
    assert os.listdir(tmp_path) == ["model.pt"]


def test_saving_keeps_links_and_permissions(tmp_path):
    path, link = tmp_path / "real.pt", tmp_path / "link.pt"
    rushlight.save(1, path)
    path.chmod(0o640)
    link.symlink_to(path)
    rushlight.save(2, link)
    assert link.is_symlink() and rushlight.load(path) == 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_text_files_are_refused(tmp_path):
    with open(tmp_path / "a.txt", "w") as file, pytest.raises(TypeError, match="binary mode"):
        rushlight.save(1, file)
