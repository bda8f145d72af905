"""Linear algebra against real torch: values, gradients of both orders, nodes, batches, complex numbers, errors."""
from __future__ import annotations

import warnings

import numpy as np
import pytest

import rushlight
from tests.ops.comparing import check, leaf, node_name, plain, second_backward

torch = pytest.importorskip("torch", reason="these tests compare with real torch")

GENERATOR = np.random.default_rng(23)
INF = float("inf")


def draw(*shape: int, dtype: type = np.float64) -> np.ndarray:
    values = GENERATOR.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * GENERATOR.standard_normal(shape)
    return values.astype(dtype)


def spread(*shape: int, dtype: type = np.float64) -> np.ndarray:
    """Random matrices with singular values that are well apart, so that every factorisation is smooth there."""
    u, _, vh = np.linalg.svd(draw(*shape, dtype=dtype), full_matrices=False)
    return ((u * np.linspace(1, 3, u.shape[-1])) @ vh).astype(dtype)


def positive(m, a):
    """A positive-definite matrix that depends smoothly on a."""
    return a @ a.mH + m.eye(a.shape[-1], dtype=a.dtype)


def hermitian(m, a):
    return a + a.mH


def phaseless(m, vectors):
    """What does not depend on the sign or phase of eigenvectors and singular vectors."""
    return vectors.abs()


SQUARE = {
    "inv": lambda m, a: m.linalg.inv(a),
    "inverse": lambda m, a: a.inverse(),
    "inv_ex": lambda m, a: m.linalg.inv_ex(a).inverse,
    "det": lambda m, a: m.linalg.det(a),
    "Tensor.det": lambda m, a: a.det(),
    "slogdet": lambda m, a: m.linalg.slogdet(a).logabsdet,
    "logdet": lambda m, a: m.logdet(positive(m, a)).real,
    "cholesky": lambda m, a: m.linalg.cholesky(positive(m, a)),
    "cholesky upper": lambda m, a: m.linalg.cholesky(positive(m, a), upper=True),
    "old cholesky": lambda m, a: positive(m, a).cholesky(),
    "cholesky_inverse": lambda m, a: m.cholesky_inverse(m.linalg.cholesky(positive(m, a))),
    "qr": lambda m, a: m.linalg.qr(a),
    "lu": lambda m, a: m.linalg.lu(a)[1:],
    "lu_factor": lambda m, a: m.linalg.lu_factor(a).LU,
    "lu_unpack": lambda m, a: m.lu_unpack(*m.linalg.lu_factor(a))[1:],
    "svdvals": lambda m, a: m.linalg.svdvals(a),
    "singular vectors": lambda m, a: [phaseless(m, one) for one in m.linalg.svd(a)],
    "eigvalsh": lambda m, a: m.linalg.eigvalsh(hermitian(m, a)),
    "eigenvectors of symmetric": lambda m, a: phaseless(m, m.linalg.eigh(hermitian(m, a))[1]),
    "pinv": lambda m, a: m.linalg.pinv(a),
    "hermitian pinv": lambda m, a: m.linalg.pinv(hermitian(m, a), hermitian=True),
    "matrix_exp": lambda m, a: m.linalg.matrix_exp(a),
    "matrix_power": lambda m, a: m.linalg.matrix_power(a, 5),
    "negative matrix_power": lambda m, a: m.matrix_power(a, -3),
    "matrix_norm": lambda m, a: m.linalg.matrix_norm(a),
    "nuclear norm": lambda m, a: m.linalg.matrix_norm(a, "nuc"),
    "2-norm": lambda m, a: m.linalg.norm(a, 2, dim=(-2, -1)),
    "-2-norm": lambda m, a: m.linalg.matrix_norm(a, -2, keepdim=True),
    "1-norm": lambda m, a: m.linalg.matrix_norm(a, 1),
    "inf-norm": lambda m, a: m.linalg.matrix_norm(a, -INF, keepdim=True),
    "cond": lambda m, a: m.linalg.cond(a),
    "cond 1": lambda m, a: m.linalg.cond(a.detach(), 1),
    "cond nuc": lambda m, a: m.linalg.cond(a, "nuc"),
    "vector_norm": lambda m, a: m.linalg.vector_norm(a, 3, dim=-1),
    "diagonal": lambda m, a: m.linalg.diagonal(a),
}


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("name", SQUARE)
def test_square_matrices(name, batch, dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(torch, rushlight, SQUARE[name], spread(*batch, 3, 3, dtype=dtype), rtol=1e-6, atol=1e-7)


RECTANGULAR = {
    "qr": lambda m, a: m.linalg.qr(a),
    "complete qr": lambda m, a: m.linalg.qr(a, "complete")[1].detach(),
    "svd": lambda m, a: [phaseless(m, one) for one in m.linalg.svd(a, full_matrices=False)],
    "full svd": lambda m, a: m.linalg.svd(a).S,
    "old svd": lambda m, a: phaseless(m, m.svd(a).V),
    "lu": lambda m, a: m.linalg.lu(a)[1:],
    "pinv": lambda m, a: m.linalg.pinv(a),
    "pinverse": lambda m, a: a.pinverse(),
    "nuclear": lambda m, a: m.norm(a, "nuc"),
    "multi_dot": lambda m, a: m.linalg.multi_dot([a, a.mH, a]),
}


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("shape", [(4, 2), (2, 4)])
@pytest.mark.parametrize("name", RECTANGULAR)
def test_rectangular_matrices(name, shape, dtype):
    check(torch, rushlight, RECTANGULAR[name], spread(*shape, dtype=dtype), rtol=1e-6, atol=1e-7)


PAIRS = {
    "solve": (lambda m, a, b: m.linalg.solve(a, b), (3, 3), (3, 2)),
    "solve a vector": (lambda m, a, b: m.linalg.solve(a, b), (3, 3), (3,)),
    "solve vectors": (lambda m, a, b: m.linalg.solve(a, b), (2, 3, 3), (2, 3)),
    "solve broadcast": (lambda m, a, b: m.linalg.solve(a, b), (2, 1, 3, 3), (4, 3, 2)),
    "solve from the right": (lambda m, a, b: m.linalg.solve(a, b, left=False), (3, 3), (2, 3)),
    "solve_ex": (lambda m, a, b: m.linalg.solve_ex(a, b).result, (3, 3), (3, 2)),
    "triangular upper": (lambda m, a, b: m.linalg.solve_triangular(a, b, upper=True), (3, 3), (3, 2)),
    "triangular lower": (lambda m, a, b: m.linalg.solve_triangular(a, b, upper=False), (2, 3, 3), (3, 2)),
    "unitriangular": (lambda m, a, b: m.linalg.solve_triangular(a, b, upper=True, unitriangular=True), (3, 3), (3, 2)),
    "triangular right": (lambda m, a, b: m.linalg.solve_triangular(a, b, upper=False, left=False), (3, 3), (2, 3)),
    "triangular_solve": (lambda m, a, b: m.triangular_solve(b, a, transpose=True).solution, (3, 3), (3, 2)),
    "cholesky_solve": (lambda m, a, b: m.cholesky_solve(b, m.linalg.cholesky(positive(m, a))), (3, 3), (3, 2)),
    "lu_solve": (lambda m, a, b: m.linalg.lu_solve(*m.linalg.lu_factor(a), b), (3, 3), (3, 2)),
    "lu_solve adjoint": (lambda m, a, b: m.linalg.lu_solve(*m.linalg.lu_factor(a), b, adjoint=True), (3, 3), (3, 2)),
    "lu_solve right": (lambda m, a, b: m.linalg.lu_solve(*m.linalg.lu_factor(a), b, left=False), (3, 3), (2, 3)),
    "old lu_solve": (lambda m, a, b: b.lu_solve(*m.linalg.lu_factor(a)), (3, 3), (3, 2)),
    "lstsq": (lambda m, a, b: m.linalg.lstsq(a, b).solution, (5, 3), (5, 2)),
    "lstsq wide": (lambda m, a, b: m.linalg.lstsq(a, b, driver="gelsd").solution, (2, 4), (2, 2)),
    "tensorsolve": (lambda m, a, b: m.linalg.tensorsolve(a.reshape(6, 2, 3), b), (6, 6), (6,)),
    "vecdot": (lambda m, a, b: m.linalg.vecdot(a, b), (2, 3), (2, 3)),
    "linalg.cross": (lambda m, a, b: m.linalg.cross(a, b), (4, 3), (1, 3)),
    "cross": (lambda m, a, b: m.cross(a, b, dim=0), (3, 4), (3, 4)),
}


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("name", PAIRS)
def test_pairs(name, dtype):
    expression, first, second = PAIRS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matrix = spread(*first, dtype=dtype) + (np.eye(*first[-2:]) if len(first) > 1 else 0)
        check(torch, rushlight, expression, matrix, draw(*second, dtype=dtype), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("n", [100, 130])
def test_large_triangular_systems_are_solved_by_blocks(n):
    a = np.tril(draw(n, n)) / n + np.eye(n)
    b = draw(n, 3)
    for upper, matrix in ((False, a), (True, a.T)):
        found = rushlight.linalg.solve_triangular(rushlight.tensor(matrix), rushlight.tensor(b), upper=upper)
        np.testing.assert_allclose(matrix @ plain(found), b, atol=1e-10)


OTHERS = {
    "eigvals": (lambda m, a: m.linalg.eigvals(a).abs(), np.diag([1.0, 2.0, 4.0]) + 0.1 * draw(3, 3)),
    "eig": (lambda m, a: m.linalg.eig(a).eigenvectors.abs(), np.diag([1.0, 2.0, 4.0]) + 0.1 * draw(3, 3)),
    "complex pairs": (lambda m, a: m.linalg.eigvals(a).real, np.array([[0.0, 1.0], [-2.0, 0.3]])),
    "tensorinv": (lambda m, a: m.linalg.tensorinv(a, 1), spread(6, 6).reshape(6, 2, 3)),
    "vander": (lambda m, a: m.linalg.vander(a, N=4), draw(2, 3)),
    "matrix_power 0": (lambda m, a: m.linalg.matrix_power(a, 0), draw(2, 2)),
    "eigenvalues that repeat": (lambda m, a: m.linalg.eigvalsh(a + a.mT), np.eye(3)),
    "householder_product": (lambda m, a: m.linalg.householder_product(a[:, :2], a[:2, 2] * 0.1), draw(4, 3)),
    "ormqr": (lambda m, a: m.ormqr(a[:, :2], a[0, :2] * 0.1, a), draw(4, 3)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_others(name):
    expression, values = OTHERS[name]
    check(torch, rushlight, expression, values, rtol=1e-6, atol=1e-7, second=name != "eigenvalues that repeat")


@pytest.mark.parametrize("p", [1, -INF, "fro"])
def test_the_condition_number_has_a_gradient(p):
    """PyTorch raises here: its own gradient fails over a value that it wrote over."""
    a = rushlight.tensor(spread(3, 3), requires_grad=True)
    assert rushlight.autograd.gradcheck(lambda x: rushlight.linalg.cond(x, p), (a,))


def test_the_determinant_of_a_singular_matrix_has_its_cofactors_for_gradient():
    """PyTorch gives zeros where a pivot is exactly zero, which is not the derivative; finite differences know it."""
    singular = np.array([[1.0, 2.0, 0.5], [2.0, 4.0, 1.0], [0.3, 1.0, 7.0]])
    a = rushlight.tensor(singular, requires_grad=True)
    assert rushlight.autograd.gradcheck(rushlight.linalg.det, (a,))
    rushlight.linalg.det(a).backward()
    assert abs(plain(a.grad)).max() > 1


@pytest.mark.parametrize("p", [0.0, 0.7, 1.0, 1.5, 2.0, 3.0, INF])
@pytest.mark.parametrize("shapes", [((2, 3), (4, 3)), ((5, 1, 2, 3), (6, 4, 3))])
def test_cdist(p, shapes):
    check(torch, rushlight, lambda m, a, b: m.cdist(a, b, p), *(draw(*shape) for shape in shapes), second=False)


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_cdist_is_differentiable_twice(p):
    a, b = (rushlight.tensor(draw(3, 2), requires_grad=True) for _ in range(2))
    assert rushlight.autograd.gradgradcheck(lambda x, y: rushlight.cdist(x, y, p), (a, b))


def test_cdist_of_equal_points_has_no_slope():
    a = draw(3, 2)
    check(torch, rushlight, lambda m, x: m.cdist(x, x.detach()), a, second=False)


def test_large_cdist():
    check(torch, rushlight, lambda m, a, b: m.cdist(a, b), draw(40, 3), draw(30, 3), second=False)


@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (3, 3)])
def test_values_that_have_no_gradient(shape):
    a, b = spread(*shape), draw(shape[0], 2)
    for driver in (None, "gelsd", "gels"):
        found = rushlight.linalg.lstsq(rushlight.tensor(a), rushlight.tensor(b), driver=driver)
        wanted = torch.linalg.lstsq(torch.tensor(a), torch.tensor(b), driver=driver)
        for name in ("solution", "residuals", "rank", "singular_values"):
            np.testing.assert_allclose(plain(getattr(found, name)), getattr(wanted, name).numpy(), atol=1e-9)
    for rank in (lambda m: m.linalg.matrix_rank(m.tensor(a)), lambda m: m.linalg.matrix_rank(m.tensor(a), tol=1.5)):
        assert rank(rushlight).item() == rank(torch).item()


def test_geqrf_with_householder_product():
    a = draw(4, 3)
    reflectors, tau = rushlight.geqrf(rushlight.tensor(a))
    q = rushlight.linalg.householder_product(reflectors, tau)
    np.testing.assert_allclose(plain(q) @ np.triu(plain(reflectors)[:3]), a, atol=1e-12)


@pytest.mark.parametrize("name, expression", {
    "inv": lambda m, a: m.linalg.inv(a), "det": lambda m, a: m.linalg.det(a), "qr": lambda m, a: m.linalg.qr(a)[0],
    "solve": lambda m, a: m.linalg.solve(a, a), "svd": lambda m, a: m.linalg.svd(a)[1],
    "eigh": lambda m, a: m.linalg.eigh(a)[0], "cholesky": lambda m, a: m.linalg.cholesky(a),
    "slogdet": lambda m, a: m.linalg.slogdet(a)[1], "pinv": lambda m, a: m.linalg.pinv(a),
    "eig": lambda m, a: m.linalg.eig(a)[0], "lu_factor": lambda m, a: m.linalg.lu_factor(a)[0],
    "matrix_exp": lambda m, a: m.linalg.matrix_exp(a), "cholesky_solve": lambda m, a: m.cholesky_solve(a, a),
    "solve_triangular": lambda m, a: m.linalg.solve_triangular(a, a, upper=True),
    "cdist": lambda m, a: m.cdist(a, a), "cross": lambda m, a: m.linalg.cross(a, a),
    "vector_norm": lambda m, a: m.linalg.vector_norm(a),
}.items())
def test_nodes_and_what_they_free(name, expression):
    values = np.diag([1.0, 2.0, 4.0])
    found, wanted = (node_name(expression(m, leaf(m, values))) for m in (rushlight, torch))
    assert found == wanted
    if name != "eig":  # its eigenvalues are complex, and a loss is not
        assert second_backward(rushlight, expression, values) == second_backward(torch, expression, values) == "freed"


def test_results_have_names():
    a = rushlight.tensor(spread(3, 3))
    assert type(rushlight.linalg.svd(a)).__name__ == "linalg_svd" and rushlight.linalg.svd(a).Vh.shape == (3, 3)
    assert type(rushlight.svd(a)).__name__ == "svd" and rushlight.svd(a).V.shape == (3, 3)
    values, vectors = rushlight.linalg.eigh(a @ a.mT)
    assert values.shape == (3,) and vectors.shape == (3, 3)


def test_float32_stays_float32():
    a = rushlight.tensor(spread(3, 3, dtype=np.float32), requires_grad=True)
    for made in (rushlight.linalg.inv(a), rushlight.linalg.svd(a).S, rushlight.linalg.matrix_exp(a), a.det(),
                 rushlight.linalg.lu(a).U, rushlight.linalg.pinv(a)):
        assert made.dtype is rushlight.float32
    assert rushlight.linalg.eigvals(a).dtype is rushlight.complex64


SINGULAR = {
    "inv": lambda m: m.linalg.inv(m.zeros(2, 2)),
    "inv of a batch": lambda m: m.linalg.inv(m.stack([m.eye(2), m.tensor([[1.0, 1.0], [1.0, 1.0]])])),
    "cholesky": lambda m: m.linalg.cholesky(m.diag(m.tensor([1.0, -1.0, 2.0]))),
    "cholesky of a batch": lambda m: m.linalg.cholesky(m.stack([m.eye(2), -m.eye(2)])),
    "solve": lambda m: m.linalg.solve(m.zeros(2, 2), m.ones(2)),
    "svd": lambda m: m.linalg.svd(m.full((2, 2), float("nan"))),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_singular_matrices_raise_linalgerror_with_torchs_words(name):
    with pytest.raises(torch.linalg.LinAlgError) as wanted:
        SINGULAR[name](torch)
    with pytest.raises(rushlight.linalg.LinAlgError) as found:
        SINGULAR[name](rushlight)
    assert isinstance(found.value, RuntimeError)
    assert str(found.value) == str(wanted.value).split("\n")[0]


def test_ex_functions_report_instead_of_raising():
    batch = np.stack([np.eye(2), -np.eye(2)])
    for function in ("cholesky_ex", "inv_ex", "lu_factor_ex"):
        found, wanted = (plain(getattr(m.linalg, function)(m.tensor(batch))[-1]) for m in (rushlight, torch))
        np.testing.assert_array_equal(found, wanted)
    assert rushlight.linalg.inv_ex(rushlight.zeros(2, 2)).info.item() == 1


ERRORS = {
    "inv of a rectangle": lambda m: m.linalg.inv(m.zeros(2, 3)),
    "inv of a vector": lambda m: m.linalg.inv(m.zeros(3)),
    "inv of integers": lambda m: m.linalg.inv(m.ones(2, 2, dtype=m.int64)),
    "inv of half": lambda m: m.linalg.inv(m.ones(2, 2, dtype=m.float16)),
    "solve of sizes": lambda m: m.linalg.solve(m.eye(2), m.ones(3, 3)),
    "solve of dtypes": lambda m: m.linalg.solve(m.eye(2), m.ones(2, dtype=m.float64)),
    "det": lambda m: m.linalg.det(m.ones(2, 3)),
    "eigh": lambda m: m.linalg.eigh(m.ones(2, 3)),
    "svd": lambda m: m.linalg.svd(m.ones(3)),
    "eig of nan": lambda m: m.linalg.eig(m.full((2, 2), float("nan"))),
    "solve_triangular": lambda m: m.linalg.solve_triangular(m.eye(2), m.ones(3, 3), upper=True),
    "lu_factor of zeros": lambda m: m.linalg.lu_factor(m.zeros(2, 2)),
    "cross": lambda m: m.linalg.cross(m.ones(2), m.ones(2)),
    "cdist of columns": lambda m: m.cdist(m.ones(2, 3), m.ones(2, 4)),
    "cdist of vectors": lambda m: m.cdist(m.ones(2), m.ones(2, 4)),
    "matrix_power": lambda m: m.linalg.matrix_power(m.ones(2, 3), 2),
    "multi_dot of one": lambda m: m.linalg.multi_dot([m.ones(2, 2)]),
    "tensorinv": lambda m: m.linalg.tensorinv(m.ones(2, 3), ind=1),
    "matrix_norm": lambda m: m.linalg.matrix_norm(m.ones(2)),
    "norm of three dimensions": lambda m: m.linalg.norm(m.ones(2, 2, 2), ord="fro"),
    "lstsq": lambda m: m.linalg.lstsq(m.ones(2), m.ones(2)),
    "gradient of complete qr": lambda m: m.linalg.qr(m.ones(3, 2, requires_grad=True), "complete")[1].sum().backward(),
    "gradient of r": lambda m: m.linalg.qr(m.ones(3, 2, requires_grad=True), "r")[1].sum().backward(),
    "a phase": lambda m: m.linalg.eigh(m.diag(m.tensor([1.0 + 0j, 2.0], requires_grad=True)))[1][0, 0].imag.backward(),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name, same_error):
    same_error(ERRORS[name], 4)
