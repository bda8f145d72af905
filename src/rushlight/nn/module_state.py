"""A module's state dict: saving, loading, and the hooks around both."""

from __future__ import annotations

import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..tensor import Tensor
from ..tensor.hooks import RemovableHandle
from .hooks import add_hook
from .parameter import Parameter

_EXTRA_STATE = "_extra_state"


class IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What load_state_dict found too few and too many."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class _StateDict(OrderedDict):
    """An OrderedDict that carries the version of each module's state as ``_metadata``."""

    _metadata: OrderedDict[str, Any]


class ModuleState:
    """The part of Module that turns it into a state dict and back."""

    _version: int = 1
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_dict_hooks: OrderedDict[int, Any]
    _state_dict_pre_hooks: OrderedDict[int, Any]
    _load_state_dict_pre_hooks: OrderedDict[int, Any]
    _load_state_dict_post_hooks: OrderedDict[int, Any]

    def get_extra_state(self) -> Any:
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state: Any) -> None:
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    # ------------------------------------------------------------------------------------------------ saving
    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, tensor in self._own_state():
            destination[prefix + name] = tensor if keep_vars else tensor.detach()
        if type(self).get_extra_state is not ModuleState.get_extra_state:
            destination[prefix + _EXTRA_STATE] = self.get_extra_state()

    def _own_state(self) -> Iterator[tuple[str, Tensor]]:
        """The parameters and persistent buffers of this module itself."""
        for name, parameter in self._parameters.items():
            if parameter is not None:
                yield name, parameter
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                yield name, buffer

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """All parameters and persistent buffers by dotted name; detached unless ``keep_vars``."""
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead.", FutureWarning, stacklevel=2
            )
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = _StateDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for pre_hook in self._state_dict_pre_hooks.values():
            pre_hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
        for hook, is_public in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, local_metadata)
            if is_public:
                if result is not None:
                    raise RuntimeError("state_dict post-hook must return None")
            elif result is not None:
                destination = result
        return destination

    def register_state_dict_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        return add_hook(self._state_dict_hooks, (hook, True))

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        return add_hook(self._state_dict_hooks, (hook, False))

    def register_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        return add_hook(self._state_dict_pre_hooks, hook)

    # ----------------------------------------------------------------------------------------------- loading
    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        return add_hook(self._load_state_dict_pre_hooks, (hook, with_module))

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        return add_hook(self._load_state_dict_post_hooks, hook)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load this module's own tensors; problems are written into the three lists instead of raised."""
        for hook, with_module in self._load_state_dict_pre_hooks.values():
            owner = (self,) if with_module else ()
            hook(*owner, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = local_metadata.get("assign_to_params_buffers", False)
        own = dict(self._own_state())
        for name, current in own.items():
            key = prefix + name
            if key in state_dict:
                problem = self._load_tensor(name, key, current, state_dict[key], assign)
                if problem is not None:
                    error_msgs.append(problem)
            elif strict:
                missing_keys.append(key)
        extra_key = prefix + _EXTRA_STATE
        if type(self).set_extra_state is not ModuleState.set_extra_state:
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra_key:
                    first, _, rest = key[len(prefix) :].partition(".")
                    if first not in (self._modules if rest else own):
                        unexpected_keys.append(key)

    def _load_tensor(self, name: str, key: str, current: Any, loaded: Any, assign: bool) -> str | None:
        """Copy (or, with ``assign``, put) one loaded tensor in place; the text of the problem if it does not fit."""
        import rushlight

        if not isinstance(loaded, Tensor):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from '
                f"checkpoint but received {type(loaded)}"
            )
        if current.dim() == 0 and loaded.dim() == 1 and loaded.shape[0] == 1:
            loaded = loaded[0]  # old checkpoints keep scalars as vectors of one
        if loaded.shape != current.shape:
            return (
                f"size mismatch for {key}: copying a param with shape {loaded.shape} from checkpoint, "
                f"the shape in current model is {current.shape}."
            )
        try:
            with rushlight.no_grad():
                if not assign:
                    current.copy_(loaded)
                elif isinstance(current, Parameter) and not isinstance(loaded, Parameter):
                    setattr(self, name, Parameter(loaded, requires_grad=current.requires_grad))
                else:
                    if isinstance(current, Parameter):
                        loaded.requires_grad_(current.requires_grad)
                    setattr(self, name, loaded)
        except Exception as problem:
            action = "swapping" if assign else "copying"
            return (
                f'While {action} the parameter named "{key}", whose dimensions in the model are {current.shape} and '
                f"whose dimensions in the checkpoint are {loaded.shape}, an exception occurred : {problem.args}."
            )
        return None

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Copy parameters and buffers from ``state_dict``; with ``strict`` its keys must match exactly."""
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing_keys: list[str] = []
        unexpected_keys: list[str] = []
        error_msgs: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)  # hooks may edit it

        def load(module: ModuleState, local_state: Any, prefix: str) -> None:
            local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
            if assign:
                local_metadata["assign_to_params_buffers"] = True
            module._load_from_state_dict(
                local_state, prefix, local_metadata, True, missing_keys, unexpected_keys, error_msgs
            )
            for name, child in module._modules.items():
                if child is not None:
                    child_prefix = prefix + name + "."
                    load(child, {k: v for k, v in local_state.items() if k.startswith(child_prefix)}, child_prefix)
            incompatible = IncompatibleKeys(missing_keys, unexpected_keys)
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, incompatible) is not None:
                    raise AssertionError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                        "values, if incompatible_keys need to be modified, it should be done inplace."
                    )

        load(self, state_dict, "")
        if strict:
            problems = []
            if missing_keys:
                problems.append(f"Missing key(s) in state_dict: {_quoted(missing_keys)}. ")
            if unexpected_keys:
                problems.append(f"Unexpected key(s) in state_dict: {_quoted(unexpected_keys)}. ")
            error_msgs = problems + error_msgs
        if error_msgs:
            listing = "\n\t".join(error_msgs)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{listing}")
        return IncompatibleKeys(missing_keys, unexpected_keys)


def _quoted(keys: list[str]) -> str:
    return ", ".join(f'"{key}"' for key in keys)
