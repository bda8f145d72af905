"""Where rushlight and torch are not compared, or are known to differ, on torch's op database: each with its reason.

Keys are (operation, aspect) as in the names of the tests; "*" stands for every aspect. An operation's plain name covers
its variants (`linalg.pinv` covers `linalg.pinv.hermitian`).
"""

from __future__ import annotations

UNINITIALISED = "uninitialised memory has no values to compare"
OPERATOR = "the database calls the operator's method on a Python number, which no program can do"
CHUNKED = "torch's chunked way works out the gradients ahead, in a node of its own, and has no second order"
# Nothing to compare: the two may well differ, and both are right.
NOT_COMPARABLE: dict[tuple[str, str], str] = {
    **{(name, "*"): UNINITIALISED for name in ("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty")},
    **{(name, "*"): UNINITIALISED for name in ("new_empty_strided", "resize_", "resize_as_")},
    **{(name, "errors"): OPERATOR for name in ("__radd__", "__rsub__", "__rmul__", "__rdiv__", "__rmod__", "__rpow__")},
    **{(name, "errors"): OPERATOR for name in ("__rand__", "__ror__", "__rxor__")},
    ("chalf", "*"): "NumPy has no complex numbers of half precision: the method says so",
    **{("nn.functional.linear_cross_entropy.chunked", aspect): CHUNKED for aspect in ("saved", "freed", "second_order")},
    **{("nn.functional.linear_cross_entropy.chunked_none", aspect): CHUNKED for aspect in ("saved", "second_order")},
}

OUT = "out= may overlap an input or have another dtype: the result is computed first and copied, so it is right"
SHAPE_ONLY = "torch keeps the input for nothing but its shape, which rushlight keeps instead"
FACTORISATION = "torch saves its LU factorisation; rushlight saves the matrix and solves again"
NAMED_OTHERWISE = "the same tensors are saved, under the names of rushlight's arguments"
BESSEL = "torch is off in the seventh decimal, where SciPy's function agrees with exact arithmetic"
# Differences that are known. The test is expected to fail, and says so once it no longer does.
KNOWN: dict[tuple[str, str], str] = {
    **{(name, "errors"): OUT for name in ("aminmax", "cat", "complex", "gather", "kthvalue", "masked_select", "take")},
    **{(name, "saved"): SHAPE_ONLY for name in ("cummax", "cummin", "nn.functional.nll_loss")},
    ("nn.functional.cross_entropy", "saved"): SHAPE_ONLY,
    ("nn.functional.linear_cross_entropy", "saved"): SHAPE_ONLY,
    ("nn.functional.ctc_loss", "saved"): "the same values, but the targets are cut to the longest and time comes first",
    **{(name, "saved"): FACTORISATION for name in ("linalg.det", "linalg.slogdet", "linalg.solve", "linalg.solve_ex")},
    **{(name, "saved"): NAMED_OTHERWISE for name in ("linalg.pinv", "pinverse", "linalg.solve_triangular")},
    ("nn.functional.linear", "saved"): NAMED_OTHERWISE,
    ("nn.functional.layer_norm", "saved"): "mean and rstd go by these names, and the bias is not kept, which no gradient needs",
    ("nn.functional.rrelu", "saved"): "the noise alone decides the gradient; torch keeps the input as well",
    ("cholesky_solve", "saved"): "no gradient needs the right-hand side, which torch keeps as well",
    **{(name, "values"): BESSEL for name in ("special.bessel_j0", "special.bessel_y1")},
    ("narrow_copy", "errors"): "torch fails an internal check with RuntimeError; here it is the IndexError of other operations",
    ("linalg.norm.subgradients_at_zero", "second_order"): "torch gives nan at zero, where the gradient itself is 0 on both",
    ("as_strided_scatter", "gradients"): "torch's gradient is 1 where src took the input's place and 0 elsewhere",
    ("as_strided_scatter", "second_order"): "torch's gradient is 1 where src took the input's place and 0 elsewhere",
}


def reason(table: dict[tuple[str, str], str], operation: str, aspect: str) -> str | None:
    """The reason a table gives for this operation and aspect, if it has one."""
    while operation:
        for key in ((operation, aspect), (operation, "*")):
            if key in table:
                return table[key]
        operation = operation.rpartition(".")[0]
    return None
