"""Every module against torch: starting values, state dict, repr, forward, gradients."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the modules are compared with torch's")

import rushlight  # noqa: E402
from tests.nn.nn_compare import close, copy_parameters, numbers, pair, total  # noqa: E402

X = (4, 6)
IMAGE = (2, 4, 5, 5)

# (what to build, shapes of the inputs; a string names a special input)
CASES = [
    (lambda nn: nn.Linear(6, 3), [X]),
    (lambda nn: nn.Linear(6, 3), [(2, 4, 6)]),
    (lambda nn: nn.Linear(6, 3), [(6,)]),
    (lambda nn: nn.Linear(6, 3, bias=False), [X]),
    (lambda nn: nn.Bilinear(6, 5, 3), [X, (4, 5)]),
    (lambda nn: nn.Identity(5, a=3), [X]),
    (lambda nn: nn.Flatten(), [IMAGE]),
    (lambda nn: nn.Flatten(0, 1), [IMAGE]),
    (lambda nn: nn.Unflatten(1, (2, 3)), [X]),
    (lambda nn: nn.ReLU(), [X]),
    (lambda nn: nn.ReLU6(), [X]),
    (lambda nn: nn.LeakyReLU(0.2), [X]),
    (lambda nn: nn.RReLU(), [X]),
    (lambda nn: nn.GELU(), [X]),
    (lambda nn: nn.GELU(approximate="tanh"), [X]),
    (lambda nn: nn.Tanh(), [X]),
    (lambda nn: nn.Sigmoid(), [X]),
    (lambda nn: nn.ELU(0.7), [X]),
    (lambda nn: nn.CELU(0.7), [X]),
    (lambda nn: nn.SELU(), [X]),
    (lambda nn: nn.SiLU(), [X]),
    (lambda nn: nn.Mish(), [X]),
    (lambda nn: nn.Softplus(), [X]),
    (lambda nn: nn.Softplus(2, 1), [X]),
    (lambda nn: nn.Softmax(dim=1), [X]),
    (lambda nn: nn.Softmin(dim=0), [X]),
    (lambda nn: nn.LogSoftmax(dim=-1), [X]),
    (lambda nn: nn.Softmax2d(), [IMAGE]),
    (lambda nn: nn.Hardtanh(), [X]),
    (lambda nn: nn.Hardtanh(-0.5, 0.3), [X]),
    (lambda nn: nn.Hardswish(), [X]),
    (lambda nn: nn.Hardsigmoid(), [X]),
    (lambda nn: nn.PReLU(), [X]),
    (lambda nn: nn.PReLU(4, init=0.1), [IMAGE]),
    (lambda nn: nn.GLU(), [X]),
    (lambda nn: nn.GLU(0), [X]),
    (lambda nn: nn.Hardshrink(), [X]),
    (lambda nn: nn.Softshrink(0.3), [X]),
    (lambda nn: nn.Tanhshrink(), [X]),
    (lambda nn: nn.Softsign(), [X]),
    (lambda nn: nn.Threshold(0.1, 20), [X]),
    (lambda nn: nn.LogSigmoid(), [X]),
    (lambda nn: nn.Dropout(0.3), [X]),
    (lambda nn: nn.LayerNorm(6), [X]),
    (lambda nn: nn.LayerNorm((5, 5), elementwise_affine=False), [IMAGE]),
    (lambda nn: nn.LayerNorm(6, bias=False), [X]),
    (lambda nn: nn.RMSNorm(6), [X]),
    (lambda nn: nn.RMSNorm((5, 5), eps=1e-3), [IMAGE]),
    (lambda nn: nn.BatchNorm1d(6), [X]),
    (lambda nn: nn.BatchNorm1d(6, momentum=None), [(4, 6, 3)]),
    (lambda nn: nn.BatchNorm2d(4, affine=False), [IMAGE]),
    (lambda nn: nn.BatchNorm2d(4, track_running_stats=False), [IMAGE]),
    (lambda nn: nn.BatchNorm3d(3), [(2, 3, 2, 3, 2)]),
    (lambda nn: nn.GroupNorm(2, 4), [IMAGE]),
    (lambda nn: nn.GroupNorm(2, 6, affine=False), [X]),
    (lambda nn: nn.InstanceNorm1d(6), [(3, 6, 4)]),
    (lambda nn: nn.InstanceNorm2d(4, affine=True, track_running_stats=True), [IMAGE]),
    (lambda nn: nn.InstanceNorm2d(4), [(4, 5, 5)]),
    (lambda nn: nn.InstanceNorm3d(3), [(2, 3, 2, 3, 2)]),
    (lambda nn: nn.LocalResponseNorm(3, alpha=0.5), [IMAGE]),
    (lambda nn: nn.LocalResponseNorm(2, alpha=0.5, k=2.0), [(2, 5, 3)]),
    (lambda nn: nn.Embedding(7, 3), ["indices"]),
    (lambda nn: nn.Embedding(7, 3, padding_idx=2), ["indices"]),
    (lambda nn: nn.Embedding(7, 3, max_norm=0.5, scale_grad_by_freq=True), ["indices"]),
    (lambda nn: nn.EmbeddingBag(7, 3), ["indices"]),
    (lambda nn: nn.EmbeddingBag(7, 3, mode="sum", padding_idx=1), ["indices"]),
    (lambda nn: nn.EmbeddingBag(7, 3, mode="max"), ["indices"]),
    (lambda nn: nn.CosineSimilarity(), [X, X]),
    (lambda nn: nn.PairwiseDistance(keepdim=True), [X, X]),
    (lambda nn: nn.PairwiseDistance(p=1), [X, X]),
    (lambda nn: nn.RNN(6, 3), [(5, 2, 6)]),
    (lambda nn: nn.RNN(6, 3, 2, "relu", batch_first=True, bidirectional=True), [(2, 5, 6)]),
    (lambda nn: nn.RNN(6, 3), [(5, 6)]),
    (lambda nn: nn.LSTM(6, 3), [(5, 2, 6)]),
    (lambda nn: nn.LSTM(6, 3, num_layers=2, bias=False, batch_first=True), [(2, 5, 6)]),
    (lambda nn: nn.LSTM(6, 3, num_layers=2, bidirectional=True), [(5, 2, 6)]),
    (lambda nn: nn.LSTM(6, 3, proj_size=2), [(5, 2, 6)]),
    (lambda nn: nn.GRU(6, 3, num_layers=2, bidirectional=True), [(5, 2, 6)]),
    (lambda nn: nn.GRU(6, 3), [(5, 2, 6), (1, 2, 3)]),
    (lambda nn: nn.RNNCell(6, 3), [X]),
    (lambda nn: nn.RNNCell(6, 3, nonlinearity="relu"), [X, (4, 3)]),
    (lambda nn: nn.LSTMCell(6, 3), [X]),
    (lambda nn: nn.LSTMCell(6, 3, bias=False), [(6,)]),
    (lambda nn: nn.GRUCell(6, 3), [X, (4, 3)]),
    (lambda nn: nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 2), nn.Softmax(dim=1)), [X]),
]


def _inputs(shapes, seed=0, dtype=np.float32):
    random = np.random.default_rng(seed)
    made = []
    for shape in shapes:
        if shape == "indices":
            made.append(pair(random.integers(0, 7, (3, 4))))
        else:
            made.append(pair(random.standard_normal(shape).astype(dtype), requires_grad=True))
    return [one for one, _ in made], [other for _, other in made]


def _build(make, seed=3):
    rushlight.manual_seed(seed)
    ours = make(rushlight.nn)
    torch.manual_seed(seed)
    theirs = make(torch.nn)
    return ours, theirs


def _name(case):
    return repr(case[0](torch.nn)).split("\n")[0] + f" {case[1]}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES, ids=_name)
def test_module(case):
    make, shapes = case
    ours, theirs = _build(make)
    assert repr(ours) == repr(theirs)
    state, reference = ours.state_dict(), theirs.state_dict()
    assert list(state) == list(reference)
    assert state._metadata == reference._metadata
    for name, value in reference.items():  # the same draws from the same seed
        np.testing.assert_allclose(numbers(state[name]), numbers(value), rtol=1e-6, atol=1e-7, err_msg=name)
    copy_parameters(ours, theirs)
    random_training = type(ours).__name__ in ("RReLU", "Dropout")
    for mode in (True, False):
        if mode and random_training:
            continue
        ours.train(mode)
        theirs.train(mode)
        one, other = _inputs(shapes)
        got, expected = ours(*one), theirs(*other)
        close(got, expected)
        if total(expected).requires_grad:
            ours.zero_grad()
            theirs.zero_grad()
            total(got).backward()
            total(expected).backward()
            close([x.grad for x in one], [x.grad for x in other], 1e-4)
            close([p.grad for p in ours.parameters()], [p.grad for p in theirs.parameters()], 1e-4)
        close(list(ours.buffers()), list(theirs.buffers()))


CLASSES = (5, 4)
LOSSES = [
    (lambda nn, r: nn.MSELoss(reduction=r), "same"),
    (lambda nn, r: nn.L1Loss(reduction=r), "same"),
    (lambda nn, r: nn.SmoothL1Loss(reduction=r), "same"),
    (lambda nn, r: nn.SmoothL1Loss(reduction=r, beta=0.3), "same"),
    (lambda nn, r: nn.HuberLoss(reduction=r, delta=0.7), "same"),
    (lambda nn, r: nn.CrossEntropyLoss(reduction=r), "classes"),
    (lambda nn, r: nn.CrossEntropyLoss(reduction=r, ignore_index=2), "classes"),
    (lambda nn, r: nn.CrossEntropyLoss(reduction=r, label_smoothing=0.2, ignore_index=1), "classes"),
    (lambda nn, r: nn.CrossEntropyLoss(reduction=r, label_smoothing=0.2), "probabilities"),
    (lambda nn, r: nn.CrossEntropyLoss(reduction=r), "probabilities"),
    (lambda nn, r: nn.CrossEntropyLoss(reduction=r), "pixels"),
    (lambda nn, r: nn.CrossEntropyLoss(reduction=r, label_smoothing=0.1), "pixels"),
    (lambda nn, r: nn.NLLLoss(reduction=r), "classes"),
    (lambda nn, r: nn.NLLLoss(reduction=r, ignore_index=0), "pixels"),
    (lambda nn, r: nn.BCELoss(reduction=r), "bits of probabilities"),
    (lambda nn, r: nn.BCEWithLogitsLoss(reduction=r), "bits"),
    (lambda nn, r: nn.KLDivLoss(reduction=r), "probabilities"),
    (lambda nn, r: nn.KLDivLoss(reduction=r, log_target=True), "same"),
    (lambda nn, r: nn.PoissonNLLLoss(reduction=r), "counts"),
    (lambda nn, r: nn.PoissonNLLLoss(reduction=r, full=True), "counts"),
    (lambda nn, r: nn.GaussianNLLLoss(reduction=r, full=True), "variance"),
    (lambda nn, r: nn.CosineEmbeddingLoss(reduction=r, margin=0.1), "pairs"),
    (lambda nn, r: nn.MarginRankingLoss(reduction=r, margin=0.1), "ranking"),
    (lambda nn, r: nn.HingeEmbeddingLoss(reduction=r), "signs"),
    (lambda nn, r: nn.SoftMarginLoss(reduction=r), "signs"),
    (lambda nn, r: nn.MultiMarginLoss(reduction=r), "classes"),
    (lambda nn, r: nn.MultiMarginLoss(reduction=r, p=2, margin=0.5), "classes"),
    (lambda nn, r: nn.MultiLabelMarginLoss(reduction=r), "labels"),
    (lambda nn, r: nn.MultiLabelSoftMarginLoss(reduction=r), "bits"),
    (lambda nn, r: nn.TripletMarginLoss(reduction=r), "triplet"),
    (lambda nn, r: nn.TripletMarginLoss(reduction=r, p=1, swap=True), "triplet"),
    (lambda nn, r: nn.TripletMarginWithDistanceLoss(reduction=r), "triplet"),
]


def _loss_inputs(kind):
    random = np.random.default_rng(1)

    def floats(*shape):
        return pair(random.standard_normal(shape).astype(np.float32), requires_grad=True)

    def positive(array):
        return pair(array.astype(np.float32), requires_grad=True)

    scores = floats(*CLASSES)
    if kind == "same":
        return [scores, floats(*CLASSES)]
    if kind == "classes":
        return [scores, pair(np.array([0, 2, 1, 3, 2]))]
    if kind == "pixels":
        return [floats(2, 4, 3, 3), pair(random.integers(0, 4, (2, 3, 3)))]
    if kind == "probabilities":
        rows = random.random(CLASSES)
        return [scores, positive(rows / rows.sum(1, keepdims=True))]
    if kind == "bits":
        return [scores, pair(random.integers(0, 2, CLASSES).astype(np.float32))]
    if kind == "bits of probabilities":
        return [positive(random.random(CLASSES)), pair(random.integers(0, 2, CLASSES).astype(np.float32))]
    if kind == "counts":
        return [scores, pair(random.integers(0, 5, CLASSES).astype(np.float32))]
    if kind == "variance":
        return [scores, floats(*CLASSES), positive(random.random(CLASSES) + 0.1)]
    if kind == "pairs":
        return [scores, floats(*CLASSES), pair(np.array([1, -1, 1, -1, -1]))]
    if kind == "ranking":
        return [floats(5), floats(5), pair(np.array([1.0, -1, 1, -1, -1], np.float32))]
    if kind == "signs":
        return [scores, pair(np.where(random.random(CLASSES) < 0.5, -1.0, 1.0).astype(np.float32))]
    if kind == "labels":
        return [scores, pair(np.array([[0, 2, -1, 1], [3, -1, 0, 0], [-1, 1, 2, 3], [0, 1, 2, 3], [2, 2, -1, -1]]))]
    return [scores, floats(*CLASSES), floats(*CLASSES)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("case", LOSSES, ids=lambda case: repr(case[0](torch.nn, "mean")).split("(")[0] + " " + case[1])
def test_loss(case, reduction):
    make, kind = case
    ours, theirs = make(rushlight.nn, reduction), make(torch.nn, reduction)
    assert repr(ours) == repr(theirs)
    inputs = _loss_inputs(kind)
    got, expected = ours(*(one for one, _ in inputs)), theirs(*(other for _, other in inputs))
    close(got, expected)
    total(got).backward()
    total(expected).backward()
    close([one.grad for one, _ in inputs], [other.grad for _, other in inputs], 1e-4)


def test_weighted_losses():
    random = np.random.default_rng(2)
    weight = random.random(4).astype(np.float32)
    ours_weight, theirs_weight = pair(weight)
    for make in (
        lambda nn, w: nn.CrossEntropyLoss(weight=w),
        lambda nn, w: nn.CrossEntropyLoss(weight=w, label_smoothing=0.1, ignore_index=1),
        lambda nn, w: nn.NLLLoss(weight=w),
        lambda nn, w: nn.MultiMarginLoss(weight=w),
    ):
        scores, target = _loss_inputs("classes")
        got = make(rushlight.nn, ours_weight)(scores[0], target[0])
        expected = make(torch.nn, theirs_weight)(scores[1], target[1])
        close(got, expected)
        got.backward()
        expected.backward()
        close(scores[0].grad, scores[1].grad)
    for make in (
        lambda nn, w: nn.BCEWithLogitsLoss(weight=w),
        lambda nn, w: nn.BCEWithLogitsLoss(pos_weight=w),
        lambda nn, w: nn.MultiLabelSoftMarginLoss(weight=w),
    ):
        scores, target = _loss_inputs("bits")
        got = make(rushlight.nn, ours_weight)(scores[0], target[0])
        expected = make(torch.nn, theirs_weight)(scores[1], target[1])
        close(got, expected)
        got.backward()
        expected.backward()
        close(scores[0].grad, scores[1].grad)


def test_bce_at_the_edges():
    """Probabilities of exactly 0 and 1 give finite losses and torch's gradients."""
    ours, theirs = pair(np.array([0.0, 1.0, 0.0, 1.0, 0.3], np.float32), requires_grad=True)
    bits = pair(np.array([0.0, 1.0, 1.0, 0.0, 1.0], np.float32))
    got, expected = (
        rushlight.nn.functional.binary_cross_entropy(ours, bits[0]),
        torch.nn.functional.binary_cross_entropy(theirs, bits[1]),
    )
    close(got, expected)
    got.backward()
    expected.backward()
    close(ours.grad, theirs.grad)


def test_mse_with_other_shape_warns_and_broadcasts():
    ours, theirs = pair(np.arange(6.0).reshape(3, 2).astype(np.float32), requires_grad=True)
    target = pair(np.ones((3, 1), np.float32))
    with pytest.warns(UserWarning, match="Using a target size"):
        got = rushlight.nn.functional.mse_loss(ours, target[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = torch.nn.functional.mse_loss(theirs, target[1])
    close(got, expected)
    got.backward()
    expected.backward()
    close(ours.grad, theirs.grad)


@pytest.mark.parametrize("name", ["ReLU", "ELU", "LeakyReLU", "SELU", "SiLU", "Mish", "Hardtanh", "Hardswish", "ReLU6"])
def test_activation_in_place(name):
    ours, theirs = pair(np.linspace(-2, 2, 9).astype(np.float32), requires_grad=True)
    first, second = ours * 2, theirs * 2
    got, expected = getattr(rushlight.nn, name)(inplace=True)(first), getattr(torch.nn, name)(inplace=True)(second)
    assert got is first and expected is second
    close(got, expected)
    total(got).backward()
    total(expected).backward()
    close(ours.grad, theirs.grad)


@pytest.mark.parametrize(
    "make",
    [
        lambda nn, x: nn.Linear(3, 2)(x),
        lambda nn, x: nn.BatchNorm2d(3)(x),
        lambda nn, x: nn.BatchNorm1d(6)(x[:1]),
        lambda nn, x: nn.LayerNorm(5)(x),
        lambda nn, x: nn.GroupNorm(4, 6),
        lambda nn, x: nn.Dropout(2),
        lambda nn, x: nn.LSTM(4, 2)(x[0]),
        lambda nn, x: nn.LSTM(4, 2)(x),
        lambda nn, x: nn.LSTM(6, 2, dropout=3),
        lambda nn, x: nn.RNN(6, 0),
        lambda nn, x: nn.RNN(6, 2)(x, x),
        lambda nn, x: nn.GRUCell(6, 2)(x, x[:2]),
        lambda nn, x: nn.CrossEntropyLoss(label_smoothing=2.0)(x, x),
        lambda nn, x: nn.MSELoss(reduction="wrong")(x, x),
        lambda nn, x: nn.BCELoss()(x * 3, x),
        lambda nn, x: nn.BCEWithLogitsLoss()(x, x[0]),
        lambda nn, x: nn.TripletMarginLoss(margin=0),
        lambda nn, x: nn.Unflatten(1, 5),
    ],
)
def test_errors(make):
    """Same exception type, and the same opening words."""
    ours, theirs = pair(np.ones((4, 6), np.float32))
    with pytest.raises(Exception) as expected:
        make(torch.nn, theirs)
    with pytest.raises(type(expected.value)) as got:
        make(rushlight.nn, ours)
    opening = " ".join(str(expected.value).split()[:3])
    if "mat1 and mat2" not in opening:
        assert str(got.value).startswith(opening)
