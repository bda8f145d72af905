"""Module: parameters, buffers and submodules as attributes, and the call that runs forward with its hooks."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ..tensor import Tensor
from ..tensor.hooks import RemovableHandle
from .hooks import (
    GLOBAL_BACKWARD_HOOKS,
    GLOBAL_BACKWARD_PRE_HOOKS,
    GLOBAL_FORWARD_HOOKS,
    GLOBAL_FORWARD_HOOKS_WITH_KWARGS,
    GLOBAL_FORWARD_PRE_HOOKS,
    BackwardHook,
    add_hook,
)
from .members import TABLES, Members
from .module_state import ModuleState
from .parameter import Buffer, Parameter

_HOOK_TABLES = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


def type_name(value: Any) -> str:
    """The name torch prints for the type of ``value`` in its errors."""
    if isinstance(value, Tensor):
        return value.type()
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _indent(text: str) -> str:
    """Shift every line but the first by two columns."""
    return text.replace("\n", "\n  ")


class Module(ModuleState):
    """Base class of all networks and layers."""

    # True on an instance that ever had a call hook, and on the class once a global hook exists. The call asks only
    # this.
    _hooked = False
    dump_patches = False
    training: bool
    _is_full_backward_hook: bool | None
    _backward_pre_hooks: OrderedDict[int, Any]
    _backward_hooks: OrderedDict[int, Any]
    _forward_hooks: OrderedDict[int, Any]
    _forward_hooks_with_kwargs: OrderedDict[int, Any]
    _forward_hooks_always_called: OrderedDict[int, Any]
    _forward_pre_hooks: OrderedDict[int, Any]
    _forward_pre_hooks_with_kwargs: OrderedDict[int, Any]

    def __init__(self) -> None:
        # Straight into __dict__: __setattr__ must look at every value it is given.
        state = self.__dict__
        state["training"] = True
        state["_non_persistent_buffers_set"] = set()
        state["_is_full_backward_hook"] = None
        for table in TABLES:
            state[table] = Members(self)
        for table in _HOOK_TABLES:
            state[table] = OrderedDict()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    # ----------------------------------------------------------------------------------------------- calling
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._hooked:
            return self._call_with_hooks(args, kwargs)
        return self.forward(*args, **kwargs)

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        called: set[int] = set()
        try:
            return self._run_hooked(args, kwargs, called)
        except Exception:
            # Hooks that must run whatever happens, with no result to show; their own errors only warn.
            for key, hook in (*GLOBAL_FORWARD_HOOKS.items(), *self._forward_hooks.items()):
                if key in called or key not in self._forward_hooks_always_called:
                    continue
                try:
                    self._call_forward_hook(key, hook, args, kwargs, None)
                except Exception as problem:
                    warnings.warn(
                        "module forward hook with ``always_call=True`` raised an exception that was silenced as "
                        f"another error was raised in forward: {problem}",
                        stacklevel=2,
                    )
            raise

    def _call_forward_hook(self, key: int, hook: Any, args: Any, kwargs: Any, result: Any) -> Any:
        if key in self._forward_hooks_with_kwargs or key in GLOBAL_FORWARD_HOOKS_WITH_KWARGS:
            return hook(self, args, kwargs, result)
        return hook(self, args, result)

    def _run_hooked(self, args: tuple[Any, ...], kwargs: dict[str, Any], called: set[int]) -> Any:
        for key, pre_hook in (*GLOBAL_FORWARD_PRE_HOOKS.items(), *self._forward_pre_hooks.items()):
            if key in self._forward_pre_hooks_with_kwargs:
                changed = pre_hook(self, args, kwargs)
                if changed is not None:
                    if not (isinstance(changed, tuple) and len(changed) == 2):
                        raise RuntimeError(
                            "forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                            f"but got {changed}."
                        )
                    args, kwargs = changed
            else:
                changed = pre_hook(self, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
        full_hooks: list[Any] = list(GLOBAL_BACKWARD_HOOKS.values())
        plain_hooks: list[Any] = []
        (full_hooks if self._is_full_backward_hook else plain_hooks).extend(self._backward_hooks.values())
        pre_hooks = [*GLOBAL_BACKWARD_PRE_HOOKS.values(), *self._backward_pre_hooks.values()]
        watch = BackwardHook(self, full_hooks, pre_hooks) if full_hooks or pre_hooks else None
        if watch is not None:
            args = watch.setup_inputs(args)
        result = self.forward(*args, **kwargs)
        for key, hook in (*GLOBAL_FORWARD_HOOKS.items(), *self._forward_hooks.items()):
            called.add(key)
            changed = self._call_forward_hook(key, hook, args, kwargs, result)
            if changed is not None:
                result = changed
        if watch is not None:
            if isinstance(result, (Tensor, tuple)):
                result = watch.setup_outputs(result)
            else:
                warnings.warn(
                    "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but "
                    f"received {type(result)}",
                    stacklevel=2,
                )
        if plain_hooks:
            node = _first_tensor(result).grad_fn
            if node is not None:
                for hook in plain_hooks:
                    node.register_hook(partial(hook, self))
        return result

    def _add_call_hook(self, table: str, hook: Any, prepend: bool = False, marks: tuple[Any, ...] = ()) -> Any:
        self.__dict__["_hooked"] = True
        return add_hook(getattr(self, table), hook, prepend, marks)

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args[, kwargs])`` before forward; what it returns replaces the arguments."""
        marks = (self._forward_pre_hooks_with_kwargs,) if with_kwargs else ()
        return self._add_call_hook("_forward_pre_hooks", hook, prepend, marks)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args[, kwargs], output)`` after forward; what it returns replaces the output."""
        marks: tuple[Any, ...] = (self._forward_hooks_with_kwargs,) if with_kwargs else ()
        if always_call:
            marks += (self._forward_hooks_always_called,)
        return self._add_call_hook("_forward_hooks", hook, prepend, marks)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` when the outputs' gradients have arrived."""
        return self._add_call_hook("_backward_pre_hooks", hook, prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` when the inputs' gradients are known."""
        self._claim_backward_hooks(full=True)
        return self._add_call_hook("_backward_hooks", hook, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """The old kind: sees only the last operation of the module. Prefer register_full_backward_hook."""
        self._claim_backward_hooks(full=False)
        return self._add_call_hook("_backward_hooks", hook)

    def _claim_backward_hooks(self, full: bool) -> None:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. "
                "Please use only one of them."
            )
        self._is_full_backward_hook = full

    # -------------------------------------------------------------------------------------------- attributes
    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for table in TABLES:
            self.__dict__[table] = Members(self, state.get(table, ()))

    def __getattr__(self, name: str) -> Any:
        # Reached only when ordinary lookup failed: a name nobody has, or a table that is not a Members.
        state = self.__dict__
        for table in ("_parameters", "_modules", "_buffers"):
            members = state.get(table)
            if members is not None and name in members:
                return members[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        state = self.__dict__
        parameters = state.get("_parameters")
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "_buffers", "_modules")
            self.register_parameter(name, value)
            return
        if parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type_name(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, None)
            return
        modules = state.get("_modules")
        if isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, "_parameters", "_buffers")
            modules[name] = value
            return
        if modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type_name(value)}' as child module '{name}' (torch.nn.Module or None expected)"
                )
            modules[name] = None
            return
        buffers: Any = state.get("_buffers")
        marked = isinstance(value, Buffer)
        if marked or (buffers is not None and name in buffers):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{type_name(value)}' as buffer '{name}' "
                    "(torch.nn.Buffer, torch.Tensor or None expected)"
                )
            if marked:
                self._forget(name, "_parameters", "_modules", "_buffers")
                self.register_buffer(name, value, value.persistent)  # type: ignore[union-attr]
            else:
                buffers[name] = value
            return
        if name in TABLES:
            if name in state:
                state[name].clear()
            value = Members(self, value)
        object.__setattr__(self, name, value)

    def _forget(self, name: str, *tables: str) -> None:
        """Take ``name`` out of the places that would hide or double a new member."""
        state = self.__dict__
        state.pop(name, None)
        for table in tables:
            state[table].pop(name, None)
        state["_non_persistent_buffers_set"].discard(name)

    def __delattr__(self, name: str) -> None:
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if not name[0].isdigit())

    def _check_name(self, kind: str, name: Any, table: str, dot: str = "") -> None:
        """Refuse a name that cannot be an attribute or that something else already has."""
        if table not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {type_name(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."{dot}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in self.__dict__[table]:
            raise KeyError(f"attribute '{name}' already exists")

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is state but no parameter; ``persistent=False`` keeps it out of the state dict."""
        self._check_name("buffer", name, "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{type_name(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter, or with None a place for one."""
        self._check_name("parameter", name, "_parameters")
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{type_name(param)}' object to parameter '{name}' "
                    "(torch.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created "
                    f"explicitly. To express '{name}' as a function of another Tensor, compute the value in the "
                    "forward() method."
                )
        self._parameters[name] = param

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a child module under ``name``."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type_name(module)} is not a Module subclass")
        self._check_name("module", name, "_modules", dot=f", got: {name}")
        self._modules[name] = module

    def register_module(self, name: str, module: Module | None) -> None:
        self.add_module(name, module)

    def get_submodule(self, target: str) -> Module:
        """The module at a dotted path; the empty path is this module."""
        module: Any = self
        if target:
            for item in target.split("."):
                if not hasattr(module, item):
                    raise AttributeError(f"{module._get_name()} has no attribute `{item}`")
                module = getattr(module, item)
                if not isinstance(module, Module):
                    raise AttributeError(f"`{item}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put ``module`` at a dotted path; with ``strict`` something must be there already."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def _get_member(self, target: str) -> tuple[Module, str, Any]:
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if not hasattr(owner, name):
            raise AttributeError(f"{owner._get_name()} has no attribute `{name}`")
        return owner, name, getattr(owner, name)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path."""
        _, name, parameter = self._get_member(target)
        if not isinstance(parameter, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return parameter

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path."""
        owner, name, buffer = self._get_member(target)
        if name not in owner._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return buffer

    # --------------------------------------------------------------------------------------------- traversal
    def _named_members(
        self, table: str, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        owners = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in owners:
            for name, member in getattr(module, table).items():
                if member is None or id(member) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(member))
                yield (f"{path}.{name}" if path else name), member

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        yield from self._named_members("_parameters", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        yield from self._named_members("_buffers", prefix, recurse, remove_duplicate)

    def children(self) -> Iterator[Module]:
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        seen: set[int] = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    # -------------------------------------------------------------------------------------------- conversion
    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        """Replace the data of every parameter (which stays the same object), gradient and buffer by ``fn`` of it."""
        import rushlight

        if recurse:
            for module in self.children():
                module._apply(fn)
        for parameter in self._parameters.values():
            if parameter is None:
                continue
            gradient = parameter.grad
            with rushlight.no_grad():
                converted = fn(parameter)
                parameter.grad = None
                parameter.data = converted
                if gradient is not None:
                    parameter.grad = fn(gradient).requires_grad_(gradient.requires_grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def apply(self, fn: Callable[[Module], Any]) -> Any:
        """Call ``fn`` on every submodule, then on this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Move and cast in place: ``to(device)``, ``to(dtype)``, ``to(device, dtype)`` or ``to(tensor)``."""
        from .conversion import parse_to

        device, dtype = parse_to(args, kwargs)

        def convert(tensor: Tensor) -> Tensor:
            wanted: dict[str, Any] = {} if device is None else {"device": device}
            if dtype is not None and (tensor.is_floating_point() or tensor.is_complex()):
                wanted["dtype"] = dtype
            return tensor.to(**wanted) if wanted else tensor

        return self._apply(convert)

    def type(self, dst_type: Any) -> Any:
        return self._apply(lambda tensor: tensor.type(dst_type))

    def float(self) -> Any:
        return self._apply(lambda tensor: tensor.float() if tensor.is_floating_point() else tensor)

    def double(self) -> Any:
        return self._apply(lambda tensor: tensor.double() if tensor.is_floating_point() else tensor)

    def half(self) -> Any:
        return self._apply(lambda tensor: tensor.half() if tensor.is_floating_point() else tensor)

    def bfloat16(self) -> Any:
        return self._apply(lambda tensor: tensor.bfloat16() if tensor.is_floating_point() else tensor)

    def cpu(self) -> Any:
        return self._apply(lambda tensor: tensor.cpu())

    def cuda(self, device: Any = None) -> Any:
        return self._apply(lambda tensor: tensor.cuda(device))

    def share_memory(self) -> Any:
        return self._apply(lambda tensor: tensor.share_memory_())

    def train(self, mode: bool = True) -> Any:
        """Set training mode here and below."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Any:
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or set them to zero."""
        for parameter in self.parameters():
            gradient = parameter.grad
            if gradient is not None:
                if set_to_none:
                    parameter.grad = None
                else:
                    if gradient.grad_fn is not None:
                        gradient.detach_()
                    else:
                        gradient.requires_grad_(False)
                    gradient.zero_()

    # ---------------------------------------------------------------------------------------------- printing
    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What to print between the parentheses."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {_indent(repr(module))}" for name, module in self._modules.items()]
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({lines[0]})"
        lines += children
        body = "\n  " + "\n  ".join(lines) + "\n" if lines else ""
        return f"{self._get_name()}({body})"


def _first_tensor(result: Any) -> Tensor:
    """The tensor whose node the old backward hooks watch."""
    while not isinstance(result, Tensor):
        result = next(iter(result.values())) if isinstance(result, dict) else result[0]
    return result
