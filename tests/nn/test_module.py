"""Module itself: attributes, state dicts, hooks, conversion, copies; each program runs on torch too."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the programs run on torch too")

import rushlight  # noqa: E402

LIBRARIES = pytest.mark.parametrize("library", [rushlight, torch], ids=["rushlight", "torch"])


def make_net(lib):
    nn = lib.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(3, 4)
            self.second = nn.Sequential(nn.Linear(4, 2), nn.ReLU())
            self.scale = nn.Parameter(lib.ones(2))
            self.register_buffer("kept", lib.zeros(2))
            self.register_buffer("unkept", lib.zeros(1), persistent=False)
            self.register_parameter("absent", None)

        def forward(self, x):
            return self.second(self.first(x)) * self.scale

    return Net()


@LIBRARIES
def test_traversal(library):
    net = make_net(library)
    assert [name for name, _ in net.named_parameters()] == [
        "scale", "first.weight", "first.bias", "second.0.weight", "second.0.bias",
    ]  # fmt: skip
    assert [name for name, _ in net.named_parameters(recurse=False, prefix="x")] == ["x.scale"]
    assert [name for name, _ in net.named_buffers()] == ["kept", "unkept"]
    assert [name for name, _ in net.named_modules()] == ["", "first", "second", "second.0", "second.1"]
    assert [name for name, _ in net.named_children()] == ["first", "second"]
    assert len(list(net.modules())) == 5
    assert list(net.state_dict()) == [
        "scale", "kept", "first.weight", "first.bias", "second.0.weight", "second.0.bias",
    ]  # fmt: skip
    assert net.get_submodule("second.0") is net.second[0]
    assert net.get_parameter("first.weight") is net.first.weight
    assert net.get_buffer("kept") is net.kept
    assert net.absent is None


@LIBRARIES
def test_shared_parameters_are_listed_once(library):
    net = make_net(library)
    net.again = net.first
    net.alias = net.scale
    assert len(list(net.parameters())) == 5
    assert len(list(net.named_parameters(remove_duplicate=False))) == 8
    assert len(net.state_dict()) == 9


@LIBRARIES
def test_setattr_rules(library):
    net = make_net(library)
    with pytest.raises(TypeError, match="cannot assign 'int' as parameter 'scale'"):
        net.scale = 3
    with pytest.raises(TypeError, match="cannot assign 'torch.FloatTensor' as parameter 'scale'"):
        net.scale = library.ones(2)
    with pytest.raises(TypeError, match="cannot assign 'str' as child module 'first'"):
        net.first = "x"
    with pytest.raises(TypeError, match="cannot assign 'str' as buffer 'kept'"):
        net.kept = "x"
    net.kept = library.ones(3)
    assert "kept" in net._buffers and net.kept.shape == (3,)
    net.scale = None
    assert net.scale is None and "scale" in net._parameters
    net.plain = 5
    net.plain = library.nn.Parameter(library.ones(1))
    assert "plain" in net._parameters and net.plain is net._parameters["plain"]
    net.first = library.nn.Identity()
    assert "first.weight" not in net.state_dict()
    del net.second
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'second'"):
        net.second  # noqa: B018
    net.tensor = library.ones(1)
    assert "tensor" in net.__dict__
    net.buffer = library.nn.Buffer(library.ones(1), persistent=False)
    assert "buffer" in net._buffers and "buffer" not in net.state_dict()


@LIBRARIES
def test_before_init(library):
    nn = library.nn

    class Early(nn.Module):
        def __init__(self, value):
            self.value = value

    with pytest.raises(AttributeError, match=r"cannot assign parameters before Module.__init__\(\) call"):
        Early(nn.Parameter(library.ones(1)))
    with pytest.raises(AttributeError, match=r"cannot assign module before Module.__init__\(\) call"):
        Early(nn.Identity())


@LIBRARIES
@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda m, lib: m.register_buffer("a.b", lib.ones(1)), KeyError, "buffer name can.{1,2}t contain"),
        (lambda m, lib: m.register_buffer("", lib.ones(1)), KeyError, "buffer name can.{1,2}t be empty string"),
        (lambda m, lib: m.register_buffer(3, lib.ones(1)), TypeError, "buffer name should be a string. Got int"),
        (lambda m, lib: m.register_buffer("forward", None), KeyError, "attribute 'forward' already exists"),
        (lambda m, lib: m.register_buffer("a", 5), TypeError, "cannot assign 'int' object to buffer 'a'"),
        (lambda m, lib: m.register_parameter("a", lib.ones(1)), TypeError, "cannot assign 'torch.FloatTensor' object"),
        (lambda m, lib: m.add_module("a", 3), TypeError, "int is not a Module subclass"),
        (lambda m, lib: m.add_module("a.b", m), KeyError, "module name can.{1,2}t contain"),
        (lambda m, lib: m.get_submodule("a.b"), AttributeError, "Net has no attribute `a`"),
        (lambda m, lib: m.get_submodule("scale"), AttributeError, "`scale` is not an nn.Module"),
        (lambda m, lib: m.get_parameter("kept"), AttributeError, "`kept` is not an nn.Parameter"),
        (lambda m, lib: m.get_buffer("scale"), AttributeError, "`scale` is not a buffer"),
        (lambda m, lib: m.train(3), ValueError, "training mode is expected to be boolean"),
        (lambda m, lib: m.to(lib.int64), TypeError, "nn.Module.to only accepts floating point or complex dtypes"),
        (lambda m, lib: lib.nn.Module()(1), NotImplementedError, r"Module \[Module\] is missing the required"),
        (lambda m, lib: m.load_state_dict(3), TypeError, "Expected state_dict to be dict-like"),
    ],
)
def test_errors(library, call, kind, words):
    with pytest.raises(kind, match=words):
        call(make_net(library), library)


@LIBRARIES
def test_load_state_dict(library):
    net, other = make_net(library), make_net(library)
    result = net.load_state_dict(other.state_dict())
    assert repr(result) == "<All keys matched successfully>"
    assert all(bool((a == b).all()) for a, b in zip(net.parameters(), other.parameters(), strict=True))
    state = other.state_dict()
    del state["scale"]
    state["surplus"] = library.ones(1)
    state["first.bias"] = library.ones(7)
    with pytest.raises(RuntimeError) as error:
        net.load_state_dict(state)
    assert str(error.value) == (
        "Error(s) in loading state_dict for Net:\n"
        '\tMissing key(s) in state_dict: "scale". \n'
        '\tUnexpected key(s) in state_dict: "surplus". \n'
        "\tsize mismatch for first.bias: copying a param with shape torch.Size([7]) from checkpoint, "
        "the shape in current model is torch.Size([4])."
    )
    del state["first.bias"]
    result = net.load_state_dict(state, strict=False)
    assert result.missing_keys == ["scale", "first.bias"] and result.unexpected_keys == ["surplus"]


@LIBRARIES
def test_state_dict_shares_memory_and_keep_vars(library):
    net = make_net(library)
    state = net.state_dict()
    assert not state["scale"].requires_grad
    state["scale"].fill_(7.0)
    assert float(net.scale.detach()[0]) == 7.0
    assert net.state_dict(keep_vars=True)["scale"] is net.scale
    assert list(net.state_dict(prefix="p."))[0] == "p.scale"


@LIBRARIES
def test_extra_state_and_state_dict_hooks(library):
    events = []

    class Counted(library.nn.Linear):
        count = 0

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    one, other = Counted(2, 2), Counted(2, 2)
    one.count = 5
    one.register_state_dict_pre_hook(lambda m, prefix, keep_vars: events.append(("pre", prefix)))
    one.register_state_dict_post_hook(lambda m, state, prefix, meta: events.append(("post", len(state))))
    other.register_load_state_dict_pre_hook(lambda m, state, *rest: events.append(("load", len(state))))
    other.register_load_state_dict_post_hook(lambda m, keys: events.append(("loaded", keys.missing_keys)))
    other.load_state_dict(one.state_dict())
    assert other.count == 5
    assert events == [("pre", ""), ("post", 3), ("load", 3), ("loaded", [])]


@LIBRARIES
def test_forward_hooks(library):
    events = []
    layer = library.nn.Linear(2, 2)
    x = library.ones(1, 2)
    plain = layer(x)
    pre = layer.register_forward_pre_hook(lambda m, args: (args[0] * 2,))
    double = layer(x)
    pre.remove()
    assert np.allclose(layer(x).detach().numpy(), plain.detach().numpy())
    assert not np.allclose(double.detach().numpy(), plain.detach().numpy())
    layer.register_forward_hook(lambda m, args, out: events.append("second"))
    layer.register_forward_hook(lambda m, args, out: events.append("first"), prepend=True)
    layer.register_forward_hook(lambda m, args, kwargs, out: events.append(sorted(kwargs)), with_kwargs=True)
    layer.register_forward_pre_hook(
        lambda m, args, kwargs: (args, {"input": kwargs["input"] * 0}), with_kwargs=True
    )
    handle = layer.register_forward_hook(lambda m, args, out: out + 100)
    result = layer(input=x)
    assert events == ["first", "second", ["input"]]
    assert np.allclose(result.detach().numpy(), layer.bias.detach().numpy() + 100)
    handle.remove()
    assert float(layer(input=x).detach().max()) < 50


@LIBRARIES
def test_always_called_hook_runs_on_failure(library):
    events = []
    layer = library.nn.Linear(2, 2)
    layer.register_forward_hook(lambda m, args, out: events.append(out), always_call=True)
    layer.register_forward_hook(lambda m, args, out: events.append("never"))
    with pytest.raises(RuntimeError):
        layer(library.ones(1, 5))
    assert events == [None]


@LIBRARIES
def test_full_backward_hooks(library):
    events = []
    layer = library.nn.Linear(3, 2, bias=False)
    layer.register_full_backward_pre_hook(lambda m, out: (events.append("pre"), (out[0] * 2,))[1])
    layer.register_full_backward_hook(
        lambda m, into, out: events.append((tuple(into[0].shape), out[0].tolist()))
    )
    layer.register_full_backward_hook(lambda m, into, out: (into[0] * 0 + 5,))
    x = library.ones(1, 3, requires_grad=True)
    layer(x).sum().backward()
    assert events == ["pre", ((1, 3), [[2.0, 2.0]])]
    assert x.grad.tolist() == [[5.0, 5.0, 5.0]]
    assert layer.weight.grad.tolist() == [[2.0] * 3] * 2


@LIBRARIES
def test_full_backward_hook_with_several_inputs_and_outputs(library):
    events = []

    class Two(library.nn.Module):
        def forward(self, a, number, b):
            return a * number, None, b * 3

    module = Two()
    module.register_full_backward_hook(
        lambda m, into, out: events.append(([g is None for g in into], [g is None for g in out]))
    )
    a, b = library.ones(2, requires_grad=True), library.ones(2, requires_grad=True)
    first, nothing, second = module(a, 2, b)
    assert nothing is None
    (first + second).sum().backward()
    assert events == [([False, True, False], [False, True, False])]
    assert a.grad.tolist() == [2.0, 2.0] and b.grad.tolist() == [3.0, 3.0]


@LIBRARIES
@pytest.mark.filterwarnings("ignore")
def test_full_backward_hook_without_input_gradients(library):
    events = []
    layer = library.nn.Linear(3, 2)
    layer.register_full_backward_hook(lambda m, into, out: events.append((into, out[0].tolist())))
    layer(library.ones(1, 3)).sum().backward()
    assert events == [((None,), [[1.0, 1.0]])]


@LIBRARIES
def test_global_hooks(library):
    events = []
    module = library.nn.modules.module
    handle = module.register_module_forward_hook(lambda m, args, out: events.append(type(m).__name__))
    try:
        library.nn.Sequential(library.nn.Identity())(1)
    finally:
        handle.remove()
    library.nn.Identity()(1)
    assert events == ["Identity", "Sequential"]


@LIBRARIES
def test_conversion(library):
    net = make_net(library)
    weight = net.first.weight
    net(library.ones(1, 3)).sum().backward()
    net.register_buffer("count", library.tensor(3))
    assert net.double() is net
    assert net.first.weight is weight
    assert weight.dtype == library.float64 and weight.grad.dtype == library.float64
    assert net.kept.dtype == library.float64 and net.count.dtype == library.int64
    net.to(library.float32)
    assert weight.dtype == library.float32
    net.half()
    assert weight.dtype == library.float16
    net.to("cpu", library.float64).to(library.ones(1))
    assert weight.dtype == library.float32 and weight.requires_grad


@LIBRARIES
def test_modes_and_gradients(library):
    net = make_net(library)
    assert net.eval() is net and not net.second[1].training
    net.train()
    assert net.second[1].training
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())
    net.requires_grad_()
    net(library.ones(1, 3)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert float(net.scale.grad.abs().sum()) == 0
    net.zero_grad()
    assert net.scale.grad is None
    seen = []
    net.apply(lambda m: seen.append(type(m).__name__))
    assert seen == ["Linear", "Linear", "ReLU", "Sequential", "Net"]


@LIBRARIES
def test_copies(library):
    nn = library.nn
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    net.tied = net[0]
    twin = copy.deepcopy(net)
    assert twin.tied is twin[0] and twin[0].weight is not net[0].weight
    assert type(twin[0].weight) is nn.Parameter and twin[0].weight.requires_grad
    loaded = pickle.loads(pickle.dumps(net))
    assert repr(loaded) == repr(net)
    for one, two, three in zip(
        net.state_dict().values(), twin.state_dict().values(), loaded.state_dict().values(), strict=True
    ):
        assert bool((one == two).all()) and bool((one == three).all())
    with library.no_grad():
        twin[0].weight.fill_(9.0)
    assert float(net[0].weight.detach().max()) != 9.0


@LIBRARIES
def test_containers(library):
    nn = library.nn
    layers = nn.Sequential(nn.Linear(1, 1), nn.Linear(2, 2), nn.Linear(3, 3))
    assert list(layers[1:]._modules) == ["1", "2"]
    layers.insert(-1, nn.Linear(9, 9))
    assert [m.in_features for m in layers] == [1, 2, 9, 3]
    del layers[0]
    assert list(layers._modules) == ["0", "1", "2"] and layers[-1].in_features == 3
    layers[0] = nn.ReLU()
    layers.append(nn.Tanh()).extend([nn.ReLU()])
    assert len(layers + layers) == 10 and len(layers * 2) == 10
    assert layers.pop(0) is not None
    with pytest.raises(IndexError, match="index 10 is out of range"):
        layers[10]
    named = nn.ModuleDict({"a": nn.Linear(1, 1), "b": nn.ReLU()})
    named["c"] = nn.Tanh()
    assert list(named) == ["a", "b", "c"] and "b" in named and len(named) == 3
    named.pop("a")
    named.update([("d", nn.ReLU())])
    assert list(named.keys()) == ["b", "c", "d"]
    listed = nn.ModuleList([nn.Linear(1, 1)])
    listed += [nn.Linear(2, 2)]
    listed.insert(0, nn.Linear(5, 5))
    assert [m.in_features for m in listed] == [5, 1, 2] and len(listed[:2]) == 2
    with pytest.raises(NotImplementedError):
        listed(1)
    parameters = nn.ParameterList([library.ones(2), nn.Parameter(library.ones(1))])
    parameters.append(library.zeros(3))
    assert len(parameters) == 3 and list(parameters.state_dict()) == ["0", "1", "2"]
    assert all(isinstance(p, nn.Parameter) for p in parameters)
    table = nn.ParameterDict({"x": library.ones(2)})
    table["y"] = library.zeros(1)
    assert list(table) == ["x", "y"] and sorted(table.state_dict()) == ["x", "y"]
    table.pop("x")
    assert "x" not in table and len(list(table.parameters())) == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda lib: lib.nn.ModuleList([lib.nn.Linear(1, 1), lib.nn.Linear(1, 1), lib.nn.Sequential(lib.nn.ReLU())]),
        lambda lib: lib.nn.ModuleList(),
        lambda lib: lib.nn.ModuleDict({"a": lib.nn.Linear(1, 2)}),
        lambda lib: lib.nn.ParameterList([lib.zeros(2, 3), 5]),
        lambda lib: lib.nn.ParameterDict({"a": lib.zeros(2, 3), "b": 5}),
        lambda lib: lib.nn.Sequential(lib.nn.Sequential(lib.nn.Linear(1, 1), lib.nn.Dropout(inplace=True))),
        lambda lib: make_net(lib),
        lambda lib: lib.nn.Parameter(lib.tensor([1.0, 2.0])),
        lambda lib: lib.nn.Embedding(3, 4, padding_idx=1, max_norm=2.0),
        lambda lib: lib.nn.ReLU(inplace=True),
    ],
)
def test_repr(make):
    assert repr(make(rushlight)) == repr(make(torch))


@LIBRARIES
def test_tables_changed_directly(library):
    """Programs write to _parameters and _modules themselves (weight dropout, MAML, functional calls)."""
    nn = library.nn
    layer = nn.Linear(2, 2)
    old = layer.weight
    layer._parameters["weight"] = library.zeros(2, 2)
    assert layer.weight is layer._parameters["weight"] and layer.weight is not old
    assert layer(library.ones(1, 2)).tolist() == [layer.bias.tolist()]
    del layer._parameters["weight"]
    assert not hasattr(layer, "weight")
    layer.weight = old.detach() * 2
    assert "weight" not in layer._parameters and (layer.weight - old * 2).abs().max().item() == 0
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    net._modules["1"] = nn.Tanh()
    assert type(net[1]) is nn.Tanh and type(getattr(net, "1")) is nn.Tanh
    assert net._modules.pop("1") is not None and not hasattr(net, "1")
    layer._buffers.update(extra=library.ones(1))
    assert layer.extra.tolist() == [1.0]
    layer._buffers.clear()
    assert not hasattr(layer, "extra")
    layer._parameters = {"bias": layer.bias}
    assert layer.bias is layer._parameters["bias"]


def test_modules_die_at_once():
    """No reference cycles: a dropped module goes without the garbage collector."""
    import gc
    import weakref

    gc.disable()
    try:
        net = make_net(rushlight)
        gone = weakref.ref(net)
        del net
        assert gone() is None
    finally:
        gc.enable()
