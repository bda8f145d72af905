"""Grad modes: no_grad, enable_grad, set_grad_enabled, inference_mode, as context, decorator and on generators."""

from __future__ import annotations

import warnings

import pytest

from tests.semantics.helpers import leaf


def test_no_grad_as_context(engine):
    x = leaf(engine, 1.0)
    with engine.no_grad():
        assert not engine.is_grad_enabled()
        y = x * 2
        assert not y.requires_grad
        assert y.is_leaf
        with engine.enable_grad():
            assert (x * 2).requires_grad
        assert not engine.is_grad_enabled()
    assert engine.is_grad_enabled()


def test_leaves_made_under_no_grad_may_require_grad(engine):
    with engine.no_grad():
        x = engine.ones(1, requires_grad=True)
        assert x.requires_grad
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad


def test_mode_is_restored_after_an_exception(engine):
    with pytest.raises(KeyError), engine.no_grad():
        raise KeyError
    assert engine.is_grad_enabled()


def test_one_object_may_be_entered_again(engine):
    mode = engine.no_grad()
    with mode:
        with engine.enable_grad():
            with mode:
                assert not engine.is_grad_enabled()
            assert engine.is_grad_enabled()
        assert not engine.is_grad_enabled()
    assert engine.is_grad_enabled()


@pytest.mark.parametrize("bare", [False, True])
def test_no_grad_as_decorator(engine, bare):
    decorate = engine.no_grad if bare else engine.no_grad()

    @decorate
    def work(a, b=2):
        """What it says."""
        return engine.is_grad_enabled(), a, b

    assert work(1, b=3) == (False, 1, 3)
    assert engine.is_grad_enabled()
    assert work.__name__ == "work"
    assert work.__doc__ == "What it says."


def test_enable_grad_as_decorator(engine):
    @engine.enable_grad()
    def work():
        return engine.is_grad_enabled()

    with engine.no_grad():
        assert work()
        assert not engine.is_grad_enabled()


def test_decorated_method(engine):
    class Model:
        @engine.no_grad()
        def predict(self, x):
            return (x * 2).requires_grad

    assert Model().predict(leaf(engine, 1.0)) is False


def test_decorated_recursion(engine):
    @engine.no_grad()
    def down(n):
        assert not engine.is_grad_enabled()
        return 0 if n == 0 else 1 + down(n - 1)

    assert down(5) == 5
    assert engine.is_grad_enabled()


def test_decorated_generator_holds_the_mode_only_inside(engine):
    @engine.no_grad()
    def work():
        received = yield engine.is_grad_enabled()
        try:
            yield received, engine.is_grad_enabled()
        except ValueError:
            yield "caught", engine.is_grad_enabled()
        return 5

    generator = work()
    assert next(generator) is False
    assert engine.is_grad_enabled()
    assert generator.send(3) == (3, False)
    assert engine.is_grad_enabled()
    assert generator.throw(ValueError) == ("caught", False)
    assert engine.is_grad_enabled()
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert stop.value.value == 5


def test_decorated_generator_is_closed(engine):
    closed = []

    @engine.no_grad()
    def work():
        try:
            yield 1
        finally:
            closed.append(engine.is_grad_enabled())

    generator = work()
    next(generator)
    generator.close()
    assert closed == [False]
    assert engine.is_grad_enabled()


def test_decorating_a_class_warns_and_covers_only_the_constructor(engine):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")

        @engine.no_grad()
        class Thing:
            def __init__(self):
                self.seen = engine.is_grad_enabled()

            def method(self):
                return engine.is_grad_enabled()

    assert any("Decorating classes is deprecated" in str(w.message) for w in caught)
    assert Thing().seen is False
    assert Thing().method() is True


def test_set_grad_enabled_as_function(engine):
    try:
        engine.set_grad_enabled(False)
        assert not engine.is_grad_enabled()
        assert not (leaf(engine, 1.0) * 2).requires_grad
    finally:
        engine.set_grad_enabled(True)
    assert engine.is_grad_enabled()


def test_set_grad_enabled_as_context_and_decorator(engine):
    with engine.set_grad_enabled(False):
        assert not engine.is_grad_enabled()
        with engine.set_grad_enabled(True):
            assert engine.is_grad_enabled()
    assert engine.is_grad_enabled()

    @engine.set_grad_enabled(False)
    def work():
        return engine.is_grad_enabled()

    # Making the decorator must not switch the mode for the code that follows.
    assert engine.is_grad_enabled()
    assert work() is False
    assert engine.is_grad_enabled()


# inference mode
def test_inference_mode_basics(engine):
    x = leaf(engine, 1.0)
    with engine.inference_mode():
        assert engine.is_inference_mode_enabled()
        assert not engine.is_grad_enabled()
        y = x * 2
        assert y.is_inference()
        assert not y.requires_grad
        with engine.inference_mode(False):
            assert not engine.is_inference_mode_enabled()
    assert not engine.is_inference_mode_enabled()
    assert not x.is_inference()


@pytest.mark.parametrize("bare", [False, True])
def test_inference_mode_as_decorator(engine, bare):
    @(engine.inference_mode if bare else engine.inference_mode())
    def work():
        return engine.is_inference_mode_enabled()

    assert work()
    assert not engine.is_inference_mode_enabled()


def test_inference_tensors_outside(engine, raises):
    with engine.inference_mode():
        a = engine.ones(1)
    assert a.is_inference()
    with raises(RuntimeError, "Inference tensors cannot be saved for backward"):
        leaf(engine, 1.0) * a
    with raises(RuntimeError, "Inplace update to inference tensor outside InferenceMode is not allowed"):
        a.add_(1)
    with raises(RuntimeError, "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed"):
        a.requires_grad_()
    with raises(RuntimeError, "Inference tensors do not track version counter"):
        a._version  # noqa: B018


def test_inference_tensors_that_need_not_be_saved(engine):
    with engine.inference_mode():
        a = engine.ones(1)
    x = leaf(engine, 1.0)
    y = x + a
    assert y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [1.0]
    assert not (a + 1).is_inference()
    clone = a.clone()
    assert not clone.is_inference()
    (x * clone).sum().backward()


def test_normal_tensors_inside_inference_mode(engine):
    b = engine.ones(2)
    with engine.inference_mode():
        b.add_(1)
        assert not b[0].is_inference()
        assert (b + 1).is_inference()
    assert b._version == 1
    assert b.tolist() == [2.0, 2.0]


# anomaly mode
def test_anomaly_mode_finds_nan(engine, raises):
    x = leaf(engine, 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with engine.autograd.detect_anomaly():
            y = (x.sqrt() * 0).sum()
            with raises(RuntimeError, "Function 'SqrtBackward0' returned nan values in its 0th output."):
                y.backward()


def test_anomaly_mode_shows_the_forward_line(engine):
    x = leaf(engine, 0.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with engine.autograd.set_detect_anomaly(True):
            y = (x.sqrt() * 0).sum()  # the line to be named
            with pytest.raises(RuntimeError):
                y.backward()
    text = "".join(str(w.message) for w in caught)
    assert "Error detected in SqrtBackward0" in text
    assert "the line to be named" in text or "x.sqrt() * 0" in text


def test_anomaly_mode_without_the_nan_check(engine):
    x = leaf(engine, 0.0)
    with engine.autograd.set_detect_anomaly(True, check_nan=False):
        (x.sqrt() * 0).sum().backward()
    assert x.grad.isnan().all().item()


def test_anomaly_switches(engine):
    assert not engine.is_anomaly_enabled()
    with engine.autograd.set_detect_anomaly(True):
        assert engine.is_anomaly_enabled()
        assert engine.is_anomaly_check_nan_enabled()
        with engine.autograd.set_detect_anomaly(False):
            assert not engine.is_anomaly_enabled()
    assert not engine.is_anomaly_enabled()
    engine.autograd.set_detect_anomaly(True)
    assert engine.is_anomaly_enabled()
    engine.autograd.set_detect_anomaly(False)
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"), engine.autograd.detect_anomaly():
        assert engine.is_anomaly_enabled()
