"""Every schedule's sequence of learning rates (and momenta) against torch's."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the sequences are compared with torch's")

import rushlight  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
LIBRARIES = pytest.mark.parametrize("library", [rushlight, torch], ids=["rushlight", "torch"])


def optimizer_of(library, kind="SGD"):
    a, b = (library.nn.Parameter(library.ones(2)) for _ in range(2))
    options = {"momentum": 0.9} if kind == "SGD" else {}
    return getattr(library.optim, kind)([{"params": [a]}, {"params": [b], "lr": 0.05}], lr=0.1, **options)


SCHEDULES = {
    "lambda": lambda S, o: S.LambdaLR(o, lambda epoch: 0.95**epoch),
    "lambdas": lambda S, o: S.LambdaLR(o, [lambda epoch: epoch / 10, lambda epoch: 0.9**epoch]),
    "multiplicative": lambda S, o: S.MultiplicativeLR(o, lambda epoch: 0.9 + 0.01 * epoch),
    "step": lambda S, o: S.StepLR(o, 3, gamma=0.5),
    "multi step": lambda S, o: S.MultiStepLR(o, [2, 5, 5, 9], gamma=0.5),
    "constant": lambda S, o: S.ConstantLR(o, factor=0.5, total_iters=4),
    "linear": lambda S, o: S.LinearLR(o, start_factor=0.3, end_factor=0.8, total_iters=6),
    "exponential": lambda S, o: S.ExponentialLR(o, 0.8),
    "cosine": lambda S, o: S.CosineAnnealingLR(o, T_max=5, eta_min=0.01),
    "polynomial": lambda S, o: S.PolynomialLR(o, total_iters=7, power=1.5),
    "cyclic": lambda S, o: S.CyclicLR(o, 0.01, 0.2, step_size_up=3, step_size_down=4),
    "cyclic 2": lambda S, o: S.CyclicLR(o, [0.01, 0.02], [0.2, 0.3], step_size_up=2, mode="triangular2"),
    "cyclic range": lambda S, o: S.CyclicLR(o, 0.01, 0.2, step_size_up=3, mode="exp_range", gamma=0.9),
    "cyclic own": lambda S, o: S.CyclicLR(o, 0.01, 0.2, 3, scale_fn=lambda x: 1 / x, cycle_momentum=False),
    "restarts": lambda S, o: S.CosineAnnealingWarmRestarts(o, 3, T_mult=2, eta_min=0.001),
    "restarts same": lambda S, o: S.CosineAnnealingWarmRestarts(o, 4),
    "one cycle": lambda S, o: S.OneCycleLR(o, 0.3, total_steps=25),
    "one cycle linear": lambda S, o: S.OneCycleLR(o, [0.3, 0.4], epochs=5, steps_per_epoch=5, anneal_strategy="linear"),
    "one cycle three": lambda S, o: S.OneCycleLR(o, 0.3, total_steps=25, three_phase=True, pct_start=0.4),
    "sequential": lambda S, o: S.SequentialLR(
        o, [S.ConstantLR(o, 0.1, 3), S.ExponentialLR(o, 0.9), S.StepLR(o, 2, 0.5)], milestones=[4, 9]
    ),
    "warm up": lambda S, o: S.SequentialLR(
        o, [S.LinearLR(o, 0.01, total_iters=5), S.CosineAnnealingLR(o, 10)], milestones=[5]
    ),
    "chained": lambda S, o: S.ChainedScheduler([S.ConstantLR(o, 0.1, 3), S.ExponentialLR(o, 0.9)]),
}


def trace(optimizer, scheduler, steps=20, step=None):
    rows = []
    for epoch in range(steps):
        groups = optimizer.param_groups
        rows.append([[g["lr"], g.get("momentum", g.get("betas", (0,))[0])] for g in groups])
        assert [float(rate) for rate in scheduler.get_last_lr()] == [float(g["lr"]) for g in groups]
        optimizer.step()
        if step is None:
            scheduler.step()
        else:
            step(scheduler, epoch)
    return np.array(rows, dtype=float)


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_sequence(name, kind):
    rows = []
    for library in (rushlight, torch):
        optimizer = optimizer_of(library, kind)
        rows.append(trace(optimizer, SCHEDULES[name](library.optim.lr_scheduler, optimizer)))
    np.testing.assert_allclose(*rows, rtol=1e-12)


@pytest.mark.parametrize("name", [n for n in SCHEDULES if n not in ("restarts", "restarts same")])
def test_state_keys_and_resuming(name):
    """The state has torch's entries, and a new scheduler that loads it goes on where the old one was."""
    states = []
    for library in (rushlight, torch):
        optimizer = optimizer_of(library)
        scheduler = SCHEDULES[name](library.optim.lr_scheduler, optimizer)
        trace(optimizer, scheduler, 7)
        states.append(scheduler.state_dict())
        rest = optimizer_of(library)
        resumed = SCHEDULES[name](library.optim.lr_scheduler, rest)
        rest.load_state_dict(optimizer.state_dict())
        resumed.load_state_dict(scheduler.state_dict())
        np.testing.assert_array_equal(trace(optimizer, scheduler, 5), trace(rest, resumed, 5))
    assert set(states[0]) == set(states[1])
    assert states[0].get("last_epoch") == states[1].get("last_epoch")


@pytest.mark.parametrize(
    "options",
    [
        dict(patience=2),
        dict(patience=1, factor=0.5, cooldown=2, min_lr=0.02),
        dict(mode="max", patience=1, threshold=0.1, threshold_mode="abs"),
        dict(patience=0, min_lr=[0.01, 0.03]),
    ],
)
def test_plateau(options):
    metrics = [5, 4, 4, 4, 4, 3, 3.1, 3.2, 3, 2.99999, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1]
    rows = []
    for library in (rushlight, torch):
        optimizer = optimizer_of(library)
        scheduler = library.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
        rows.append(trace(optimizer, scheduler, 20, lambda s, epoch: s.step(metrics[epoch])))
    np.testing.assert_allclose(*rows, rtol=1e-12)


def test_epoch_argument_and_fractions():
    rows = []
    for library in (rushlight, torch):
        S = library.optim.lr_scheduler
        row = []
        for name in ("step", "multi step", "constant", "linear", "exponential", "cosine", "polynomial"):
            optimizer = optimizer_of(library)
            scheduler = SCHEDULES[name](S, optimizer)
            for epoch in (3, 1, 6):
                scheduler.step(epoch)
                row.append(optimizer.param_groups[0]["lr"])
        optimizer = optimizer_of(library)
        scheduler = S.CosineAnnealingWarmRestarts(optimizer, 3, T_mult=2)
        for epoch in (0.5, 2.7, 3.2, 8.9, 10):
            scheduler.step(epoch)
            row.append(optimizer.param_groups[0]["lr"])
        rows.append(row)
    np.testing.assert_allclose(*rows, rtol=1e-12)


@LIBRARIES
def test_order_warning_and_hands_off_the_step(library):
    optimizer = optimizer_of(library)
    scheduler = library.optim.lr_scheduler.StepLR(optimizer, 1)
    with pytest.warns(UserWarning, match="Detected call of `lr_scheduler.step"):
        scheduler.step()
    optimizer = optimizer_of(library)
    scheduler = library.optim.lr_scheduler.StepLR(optimizer, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.step()
        scheduler.step()
    with pytest.warns(UserWarning, match="To get the last learning rate computed"):
        scheduler.get_lr()


@LIBRARIES
@pytest.mark.parametrize(
    "make, kind, words",
    [
        (lambda S, o: S.StepLR(5, 1), TypeError, "int is not an Optimizer"),
        (lambda S, o: S.StepLR(o, 1, last_epoch=3), KeyError, "param 'initial_lr' is not specified"),
        (lambda S, o: S.LambdaLR(o, [1, 2, 3]), ValueError, "Expected 2 lr_lambdas, but got 3"),
        (lambda S, o: S.ConstantLR(o, factor=2), ValueError, "Constant multiplicative factor expected"),
        (lambda S, o: S.LinearLR(o, start_factor=2), ValueError, "Starting multiplicative factor expected"),
        (lambda S, o: S.SequentialLR(o, [], []), ValueError, "SequentialLR expects at least one scheduler"),
        (lambda S, o: S.SequentialLR(o, [S.StepLR(o, 1)], [1]), ValueError, "Sequential Schedulers expects number"),
        (lambda S, o: S.ReduceLROnPlateau(o, factor=1), ValueError, "Factor should be < 1.0"),
        (lambda S, o: S.ReduceLROnPlateau(o, mode="a"), ValueError, "mode a is unknown!"),
        (lambda S, o: S.OneCycleLR(o, 0.1), ValueError, "You must define either total_steps OR"),
        (lambda S, o: S.OneCycleLR(o, 0.1, 10, pct_start=2), ValueError, "Expected float between 0 and 1 pct_start"),
        (lambda S, o: S.CosineAnnealingWarmRestarts(o, 0), ValueError, "Expected positive integer T_0"),
        (lambda S, o: S.CyclicLR(o, 0.1, 1, mode="x"), ValueError, "mode is invalid and scale_fn is None"),
    ],
)
def test_errors(library, make, kind, words):
    with pytest.raises(kind, match=words.replace("'", ".{0,1}'")):
        make(library.optim.lr_scheduler, optimizer_of(library))
