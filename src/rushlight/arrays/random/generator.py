"""The random generator: the Mersenne Twister stream, its state, and the uniform draws all distributions are made of."""

from __future__ import annotations

import math
import os
import threading
from typing import Any

import numpy as np

DEFAULT_SEED = 67280421310721
STATE_WORDS = 624
# NumPy scalars, not Python numbers: on a handful of elements the conversion costs as much as the operation.
LOWEST_24_BITS = np.uint32((1 << 24) - 1)
LOWEST_53_BITS = np.uint64((1 << 53) - 1)
UNIT_24 = np.float32(2.0**-24)
UNIT_53 = np.float64(2.0**-53)
HALF_WORD = np.uint64(32)

# The byte layout of a PyTorch CPU generator state (5056 bytes, C alignment), so that states can be exchanged.
STATE_LAYOUT = np.dtype(
    [
        ("seed", "<u8"),
        ("left", "<i4"),
        ("seeded", "<i4"),
        ("next", "<u8"),
        ("words", "<u8", (STATE_WORDS,)),
        ("normal_x", "<f8"),
        ("normal_y", "<f8"),
        ("normal_rho", "<f8"),
        ("normal_is_valid", "<i4"),
        ("padding", "<i4"),
        ("float_normal", "<f4"),
        ("float_normal_is_valid", "u1"),
        ("end_padding", "u1", (3,)),
    ]
)

# Above this many draws the typed fill of RandomState beats random_raw (2.7 against 4.3 ms for a million).
BULK_DRAWS = 4096


class Generator:
    """A seeded stream of random numbers that matches ``torch.Generator`` on the CPU.

    The twister itself is NumPy's. It is made at the first draw, because importing ``numpy.random`` costs more than
    the rest of the room. ``lock`` is held by every distribution for as long as its draws must stay together.
    """

    __slots__ = ("_bits", "_float_normal", "_fresh", "_next_normal", "_seed", "_typed", "_unseeded", "device", "lock")

    def __init__(self, device: Any = "cpu") -> None:
        name = str(device)
        if name != "cpu":
            raise NotImplementedError(f"Generator: only the 'cpu' device has a random stream, but got device '{name}'")
        self.device = name
        self.lock = threading.RLock()
        self._bits: Any = None
        self._typed: Any = None
        self._float_normal: float | None = None
        self._reset(DEFAULT_SEED)

    def _reset(self, seed: int) -> None:
        self._seed = seed
        self._next_normal: float | None = None
        self._float_normal = None
        self._unseeded = True  # the twister still has to be given the seed
        self._fresh = True  # nothing drawn since seeding: PyTorch marks this in its state

    def manual_seed(self, seed: int) -> Generator:
        """Restart the stream at ``seed``; a negative seed counts down from 2**64."""
        if isinstance(seed, np.integer):
            raise TypeError("an integer is required")
        if not isinstance(seed, int) or isinstance(seed, bool):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        if not -(1 << 63) <= seed < 1 << 64:
            raise ValueError("Overflow when unpacking long long")
        with self.lock:
            self._reset(seed & 0xFFFF_FFFF_FFFF_FFFF)
        return self

    def seed(self) -> int:
        """Restart the stream at a seed from the operating system and return that seed."""
        seed = int.from_bytes(os.urandom(8), "little")
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """The seed the stream was last started with."""
        return self._seed

    def _twister(self) -> Any:
        """NumPy's bit generator, standing where this stream stands. The caller holds the lock."""
        if self._bits is None:
            from numpy.random import MT19937, RandomState

            self._bits = MT19937(0)
            self._typed = RandomState(self._bits)
        if self._unseeded:
            # Only the low half of the seed enters the twister, as in PyTorch. This one call is 1.6 us, against 200 us
            # for a new RandomState and a copy of its state.
            self._bits._legacy_seeding(self._seed & 0xFFFF_FFFF)
            self._unseeded = False
        return self._bits

    def get_state_array(self) -> np.ndarray:
        """The state as 5056 bytes, laid out as PyTorch does."""
        record = np.zeros((), STATE_LAYOUT)
        with self.lock:
            inner = self._twister().state["state"]
            position = int(inner["pos"])
            record["seed"] = self._seed
            record["left"] = STATE_WORDS + 1 - position
            record["seeded"] = 1
            record["next"] = 0 if self._fresh else position
            record["words"] = inner["key"]
            if self._next_normal is not None:
                record["normal_y"] = self._next_normal
                record["normal_is_valid"] = 1
            if self._float_normal is not None:
                record["float_normal"] = self._float_normal
                record["float_normal_is_valid"] = 1
        return np.frombuffer(record.tobytes(), np.uint8).copy()

    def set_state_array(self, state: np.ndarray) -> None:
        """Continue from a state made by :meth:`get_state_array` or by PyTorch."""
        if not isinstance(state, np.ndarray) or state.dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if state.size != STATE_LAYOUT.itemsize:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {STATE_LAYOUT.itemsize} "
                f"but found the input RNG state size to be {state.size}"
            )
        record = np.frombuffer(state.tobytes(), STATE_LAYOUT)[0]
        left, position = int(record["left"]), int(record["next"])
        fresh = left == 1 and position == 0
        if record["seeded"] != 1 or not (fresh or (position <= STATE_WORDS and left + position == STATE_WORDS + 1)):
            raise RuntimeError("Invalid mt19937 state")
        with self.lock:
            self._reset(int(record["seed"]))
            self._twister().state = {
                "bit_generator": "MT19937",
                "state": {"key": record["words"].astype(np.uint32), "pos": STATE_WORDS if fresh else position},
            }
            self._fresh = fresh
            if record["normal_is_valid"]:
                self._next_normal = float(record["normal_y"])
            if record["float_normal_is_valid"]:
                self._float_normal = float(record["float_normal"])

    def clone_state(self) -> Generator:
        """A second generator that continues from here on its own."""
        twin = Generator(self.device)
        twin.set_state_array(self.get_state_array())
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.device, self.get_state_array())

    def __repr__(self) -> str:
        return f"<rushlight.Generator object on {self.device} with seed {self._seed}>"

    # ---- draws ----

    def random32(self, count: int) -> np.ndarray:
        """``count`` 32-bit draws as uint32."""
        with self.lock:
            twister = self._twister()
            if count:
                self._fresh = False
            if count >= BULK_DRAWS:
                bits: np.ndarray = self._typed.randint(0, 1 << 32, count, np.uint32)
                return bits
            raw: np.ndarray = twister.random_raw(count).astype(np.uint32)
            return raw

    def random64(self, count: int) -> np.ndarray:
        """``count`` 64-bit draws as uint64: two 32-bit draws each, the high half first."""
        halves = self.random32(2 * count)
        whole: np.ndarray = np.left_shift(halves[::2], HALF_WORD)
        whole |= halves[1::2]
        return whole

    def uniform32(self, count: int) -> np.ndarray:
        """``count`` float32 values in [0, 1): the low 24 bits of one draw each."""
        bits = self.random32(count)
        bits &= LOWEST_24_BITS
        values = bits.view(np.int32).astype(np.float32)  # signed: there is no fast unsigned conversion before AVX-512
        values *= UNIT_24
        return values

    def uniform64(self, count: int) -> np.ndarray:
        """``count`` float64 values in [0, 1): the low 53 bits of one 64-bit draw each."""
        bits = self.random64(count)
        bits &= LOWEST_53_BITS
        values = bits.view(np.int64).astype(np.float64)
        values *= UNIT_53
        return values

    def uniform_scalar(self) -> float:
        """One float64 in [0, 1), for the rejection loops that cannot know how many they need. The caller locks."""
        draw = self._twister().random_raw
        self._fresh = False
        return ((draw() << 32 | draw()) & 0x1F_FFFF_FFFF_FFFF) * 2.0**-53

    def normal_samples(self, count: int) -> list[float]:
        """``count`` standard normals, one Box-Muller pair at a time; an unused second half is kept for the next call.

        The math module rather than NumPy: it is the C library's arithmetic, which is what PyTorch calls here, so the
        result is the same to the last bit (NumPy's vector routines differ by one unit in the last place at times).
        """
        samples: list[float] = []
        with self.lock:
            if self._next_normal is not None and count:
                samples.append(self._next_normal)
                self._next_normal = None
            pairs = (count - len(samples) + 1) // 2
            uniforms = self.uniform64(2 * pairs).tolist()
            for turn, height in zip(uniforms[::2], uniforms[1::2], strict=True):
                radius = math.sqrt(-2.0 * math.log1p(-height))
                angle = 2.0 * math.pi * turn
                samples.append(radius * math.cos(angle))
                samples.append(radius * math.sin(angle))
            if len(samples) > count:
                self._next_normal = samples.pop()
        return samples


def _restore(device: str, state: np.ndarray) -> Generator:
    generator = Generator(device)
    generator.set_state_array(state)
    return generator


# PyTorch starts the default stream at a fresh seed in every process; only an explicit Generator() has a fixed one.
default_generator = Generator()
default_generator.seed()
