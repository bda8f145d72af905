"""What modules need for hooks: registration, and the boundary nodes behind full backward hooks."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ..tensor import Tensor
from ..tensor.hooks import RemovableHandle

# Hooks of every module (register_module_forward_hook and friends).
GLOBAL_FORWARD_PRE_HOOKS: OrderedDict[int, Any] = OrderedDict()
GLOBAL_FORWARD_HOOKS: OrderedDict[int, Any] = OrderedDict()
GLOBAL_FORWARD_HOOKS_WITH_KWARGS: OrderedDict[int, Any] = OrderedDict()
GLOBAL_BACKWARD_PRE_HOOKS: OrderedDict[int, Any] = OrderedDict()
GLOBAL_BACKWARD_HOOKS: OrderedDict[int, Any] = OrderedDict()


def add_hook(
    hooks: OrderedDict[int, Any], hook: Any, prepend: bool = False, marks: tuple[Any, ...] = ()
) -> RemovableHandle:
    """Put ``hook`` into ``hooks`` and its id into every table of ``marks``."""
    handle = RemovableHandle(hooks, extra_dict=list(marks))
    hooks[handle.id] = hook
    for mark in marks:
        mark[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


_boundary: Any = None


def _boundary_function() -> Any:
    """The identity whose node marks where a module begins or ends (made on first use: autograd is a later room)."""
    global _boundary
    if _boundary is None:
        from ..autograd import Function

        class BackwardHookFunction(Function):
            @staticmethod
            def forward(ctx: Any, *tensors: Tensor) -> Any:
                ctx.mark_non_differentiable(*(t for t in tensors if not t.requires_grad))
                return tensors

            @staticmethod
            def backward(ctx: Any, *gradients: Any) -> Any:
                return gradients

        _boundary = BackwardHookFunction
    return _boundary


class BackwardHook:
    """Watches one call of a module: its inputs and outputs pass through identity nodes that carry the hooks.

    The hooks run when the gradients of all watched inputs are known, or right after the outputs' gradients where no
    input requires one.
    """

    def __init__(self, module: Any, hooks: list[Any], pre_hooks: list[Any]) -> None:
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.grad_outputs: Any = None
        self.output_places: list[int] = []
        self.output_count = -1
        self.input_places: list[int] | None = None
        self.input_count = -1

    def _spread(self, gradients: Any, places: list[int], count: int) -> tuple[Any, ...]:
        """The gradients of the tensors, with None where the module had something that is not a tensor."""
        full: list[Any] = [None] * count
        for place, gradient in zip(places, gradients, strict=False):
            full[place] = gradient
        return tuple(full)

    def _pick(self, full: Any, places: list[int]) -> tuple[Any, ...]:
        return tuple(full[place] for place in places)

    def _pass_through(self, values: tuple[Any, ...], attach: Callable[[Any], None]) -> tuple[Any, list[int] | None]:
        """Send the tensors of ``values`` through one identity node and hand that node to ``attach``."""
        places = [place for place, value in enumerate(values) if isinstance(value, Tensor)]
        from ..autograd import is_grad_enabled

        if not (is_grad_enabled() and any(values[place].requires_grad for place in places)):
            return values, None
        passed = _boundary_function().apply(*(values[place] for place in places))
        if isinstance(passed, Tensor):
            passed = (passed,)
        nodes = [t.grad_fn for t in passed if t.grad_fn is not None]
        if not nodes:
            raise RuntimeError(
                "Error while setting up backward hooks: no output of the boundary node carries a gradient function."
            )
        attach(nodes[0])
        replaced = list(values)
        for place, tensor in zip(places, passed, strict=True):
            replaced[place] = tensor
        return tuple(replaced), places

    def setup_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        def attach(node: Any) -> None:
            node.register_hook(self._inputs_done)

        passed, self.input_places = self._pass_through(args, attach)
        self.input_count = len(args)
        return passed

    def setup_outputs(self, result: Any) -> Any:
        single = not isinstance(result, tuple)

        def attach(node: Any) -> None:
            node.register_prehook(self._outputs_arrived)

        values = (result,) if single else result
        passed, places = self._pass_through(values, attach)
        if places is not None:
            self.output_places = places
        self.output_count = len(values)
        return passed[0] if single else passed

    def _inputs_done(self, grad_inputs: Any, _: Any) -> Any:
        if self.grad_outputs is None:
            # Reached before the outputs' node: the gradient came in by another way, so there is nothing to report.
            raise RuntimeError(
                f"Module backward hook for grad_input is called before the grad_output one. This happens because the "
                f"gradient in your nn.Module flows to the Module's input without passing through the Module's output. "
                f"Make sure that the output depends on the input and that the loss is computed based on the output. "
                f"(module {type(self.module).__name__})"
            )
        assert self.input_places is not None
        full = self._spread(grad_inputs, self.input_places, self.input_count)
        result = self._call_hooks(full, self.grad_outputs)
        self.grad_outputs = None
        return None if result is None else self._pick(result, self.input_places)

    def _call_hooks(self, grad_inputs: Any, grad_outputs: Any) -> Any:
        """Run the user's hooks in turn; each sees what the one before it returned. None if nobody changed anything."""
        changed = None
        for hook in self.hooks:
            result = hook(self.module, grad_inputs, grad_outputs)
            if result is None:
                continue
            if not isinstance(result, tuple):
                result = (result,)
            if len(result) != len(grad_inputs):
                raise RuntimeError(
                    "Backward hook returned an invalid number of grad_input, "
                    f"got {len(result)}, but expected {len(grad_inputs)}"
                )
            changed = grad_inputs = result
        return changed

    def _outputs_arrived(self, grad_outputs: Any) -> Any:
        full = self._spread(grad_outputs, self.output_places, self.output_count)
        changed = False
        for hook in self.pre_hooks:
            result = hook(self.module, full)
            if result is None:
                continue
            if not isinstance(result, tuple):
                result = (result,)
            if len(result) != len(full):
                raise RuntimeError(
                    "Backward pre hook returned an invalid number of grad_output, "
                    f"got {len(result)}, but expected {len(full)}"
                )
            full, changed = result, True
        self.grad_outputs = full
        replaced = self._pick(full, self.output_places) if changed else None
        if self.input_places is None:
            # No input asks for a gradient, so no later node would call these.
            if self.hooks:
                warnings.warn(
                    "Full backward hook is firing when gradients are computed with respect to module outputs since no "
                    "inputs require gradients.",
                    stacklevel=2,
                )
            changed_inputs = self._call_hooks(self._spread((), [], self.input_count), full)
            if changed_inputs is not None and any(gradient is not None for gradient in changed_inputs):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None "
                    "for all gradients."
                )
            self.grad_outputs = None
        return replaced
