"""cuda, backends, accelerator, amp and random, as a program on a machine without a GPU sees them."""
from __future__ import annotations

import warnings

import pytest

import rushlight

torch = pytest.importorskip("torch", reason="real torch on the CPU is the expectation")
pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="the expectation is real torch without CUDA")


@pytest.mark.parametrize("ask", [
    lambda e: e.cuda.is_available(), lambda e: e.cuda.device_count(), lambda e: e.cuda.is_initialized(),
    lambda e: e.cuda.manual_seed(1), lambda e: e.cuda.manual_seed_all(1), lambda e: e.cuda.empty_cache(),
    lambda e: e.cuda.memory_allocated(), lambda e: e.cuda.max_memory_allocated(), lambda e: e.cuda.get_arch_list(),
    lambda e: e.cuda.get_rng_state_all(), lambda e: e.cuda.set_rng_state_all([]), lambda e: e.cuda.is_bf16_supported(),
    lambda e: e.version.cuda, lambda e: e.version.hip, lambda e: e.accelerator.is_available(),
    lambda e: e.accelerator.current_accelerator(), lambda e: e.accelerator.device_count(),
    lambda e: e.backends.mps.is_available(), lambda e: e.backends.mps.is_built(), lambda e: e.backends.cuda.is_built(),
    lambda e: e.backends.cudnn.is_available(), lambda e: e.backends.cudnn.version(), lambda e: e.backends.cudnn.enabled,
    lambda e: e.backends.cudnn.benchmark, lambda e: e.backends.cudnn.deterministic, lambda e: e.backends.cudnn.allow_tf32,
    lambda e: e.backends.cudnn.benchmark_limit, lambda e: e.backends.cuda.matmul.allow_tf32, lambda e: e.backends.mkldnn.enabled,
    lambda e: e.backends.cuda.flash_sdp_enabled(), lambda e: e.is_autocast_enabled(),
    lambda e: e.device("cuda" if e.cuda.is_available() else "cpu").type,
])  # fmt: skip
def test_same_answers(ask):
    assert ask(rushlight) == ask(torch)


@pytest.mark.parametrize("ask", [
    lambda e: e.cuda.current_device(), lambda e: e.cuda.get_device_name(0), lambda e: e.cuda.get_device_properties(0),
    lambda e: e.cuda.get_rng_state(), lambda e: e.accelerator.current_device_index(),
])  # fmt: skip
def test_same_errors(ask, same_error):
    same_error(ask, words=5)


def test_waiting_for_nothing():
    rushlight.cuda.synchronize()
    rushlight.accelerator.synchronize()


@pytest.mark.parametrize("engine", [torch, rushlight], ids=["torch", "rushlight"])
def test_switches_can_be_set(engine):
    cudnn = engine.backends.cudnn
    before = cudnn.deterministic
    try:
        cudnn.deterministic = True
        with cudnn.flags(enabled=False, deterministic=False):
            assert (cudnn.enabled, cudnn.deterministic) == (False, False)
        assert (cudnn.enabled, cudnn.deterministic) == (True, True)
    finally:
        cudnn.deterministic = before


@pytest.mark.parametrize("engine", [torch, rushlight], ids=["torch", "rushlight"])
class TestMixedPrecision:
    def test_switched_off_it_changes_nothing(self, engine):
        with engine.autocast("cpu", enabled=False), engine.amp.autocast(device_type="cuda", enabled=False):
            assert (engine.ones(2, 2) @ engine.ones(2, 2)).dtype is engine.float32

        @engine.amp.autocast("cpu", enabled=False)
        def double(x):
            """Doubles."""
            return x * 2

        assert double(engine.ones(1)).item() == 2.0
        assert double.__doc__ == "Doubles."

    def test_on_a_device_that_is_not_there_it_warns(self, engine):
        with pytest.warns(UserWarning, match="CUDA is not available"):
            with engine.autocast("cuda"):
                assert (engine.ones(2, 2) @ engine.ones(2, 2)).dtype is engine.float32
        with pytest.warns(UserWarning, match="GradScaler is enabled, but CUDA is not available"):
            assert not engine.amp.GradScaler("cuda").is_enabled()

    def test_older_names_warn(self, engine):
        with pytest.warns(FutureWarning, match="is deprecated"):
            engine.cuda.amp.autocast(enabled=False)
        with pytest.warns(FutureWarning, match="is deprecated"):
            engine.cuda.amp.GradScaler(enabled=False)

    def test_a_scaler_switched_off_passes_through(self, engine):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            scaler = engine.amp.GradScaler("cpu", enabled=False)
        x = engine.ones(2, requires_grad=True)
        optimizer = engine.optim.SGD([x], lr=0.5)
        loss = (x * 2).sum()
        assert scaler.scale(loss) is loss
        loss.backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        assert x.tolist() == [0.0, 0.0]
        assert (scaler.get_scale(), scaler.state_dict()) == (1.0, {})
        scaler.load_state_dict(scaler.state_dict())


def test_mixed_precision_on_the_cpu_is_refused():
    with pytest.raises(NotImplementedError, match="enabled=False"):
        rushlight.autocast("cpu", dtype=rushlight.bfloat16)
    with pytest.raises(NotImplementedError, match="enabled=False"):
        rushlight.amp.GradScaler("cpu")


def test_bad_device_types(same_error):
    same_error(lambda engine: engine.autocast("nowhere"), words=3)
    same_error(lambda engine: engine.autocast(3))


def test_random_streams():
    found = []
    for engine in (torch, rushlight):
        engine.random.manual_seed(5)
        with engine.random.fork_rng():
            inside = engine.rand(2).tolist()
        state = engine.random.get_rng_state()
        after = engine.rand(2).tolist()
        engine.random.set_rng_state(state)
        again = engine.rand(2).tolist()
        with engine.random.fork_rng(enabled=False):
            engine.rand(1)
        found.append((inside, after, again, engine.rand(1).tolist(), engine.random.initial_seed(), state.tolist()))
        assert inside == after == again
    assert found[0] == found[1]


def test_seed_is_fresh():
    assert rushlight.random.seed() != rushlight.random.seed()
    assert rushlight.random.initial_seed() == rushlight.initial_seed()
