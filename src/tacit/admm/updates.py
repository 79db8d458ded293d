"""The equations of Ryu & Kim (2021), one function each. Only operators: NumPy, torch, one agent or many.

    w        the global model            rho    the penalty
    z        a local model z_p           eta    the proximity of (8)
    dual     its multiplier lambda_p     slope  f'_p(z_p) + noise, or f'_p(z_p) alone
"""


def consensus(z, dual, rho):
    """w+ = 1/P sum_p (z_p - lambda_p / rho)   (4a), z and dual the means over the agents: (4a) is linear."""
    return z - dual / rho


def heavy_ball(w, moved, momentum):
    """w+ = w + momentum (w_t - w_t-1): the server repeats a share of its last move (Polyak 1964; not in the paper)."""
    return w + momentum * moved


def prox_center(w, z, dual, slope, rho, eta):
    """argmin_u <slope - dual, u> + rho/2 |u - w|^2 + 1/(2 eta) |u - z|^2   (5), and (8) with noise."""
    return (rho * w + dual - slope + z / eta) / (rho + 1 / eta)


def trust_center(w, dual, slope, rho):
    """argmin_u <slope - dual, u> + rho/2 |u - w|^2   (6), and (9) with noise, before the trust region."""
    return w + (dual - slope) / rho


def exact_slope(u, w, dual, slope, rho):
    """The gradient at u of f_p(u) - <dual, u> + rho/2 |w - u|^2   (4b), slope = f'_p(u)."""
    return slope - dual + rho * (u - w)


def ascent(dual, w, z, rho):
    """lambda+ = lambda + rho (w+ - z+)   (4c)."""
    return dual + rho * (w - z)
