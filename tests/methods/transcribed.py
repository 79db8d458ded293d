"""Methods in plain NumPy, as their formulas stand on paper: agents are pairs (x, y), J = 4, K = 3.

`std[p]` is the std of the noise of agent p, whose standard noise `drawn` names.
"""

import math

import numpy as np

from tacit.problem.sensitivity import ROOM

T, BETA = 6, 1e-3
SIZES = (5, 8, 11)  # of the small federation, all different: they name the agents


def drawn(p, t, shape):
    """Standard noise of agent p in round t."""
    return np.random.default_rng([p, t]).normal(size=shape)


def slope_of(x, y, u, clip, records):
    """1/I sum_i x_i a_i^T, a_i = softmax(x_i^T u) - e_{y_i}, each record shrunk so that |x_i a_i^T| <= clip."""
    power = np.exp(x @ u)
    a = power / power.sum(1, keepdims=True) - np.eye(u.shape[1])[y]
    size = np.linalg.norm(x, axis=1) * np.linalg.norm(a, axis=1)
    a *= np.minimum(1, ROOM * clip / size)[:, None]
    return x.T @ a / records


def fedgd(agents, std, step, clip, beta):
    """w+ = w - step^t ( sum_p ( f'_p(w) + xi_p ) + beta r'(w) ),  step^t falls to zero."""
    w, found = np.zeros((4, 3)), []
    for t in range(1, T + 1):
        slope = 2 * beta * w
        for p, (x, y) in enumerate(agents):
            slope = slope + slope_of(x, y, w, clip, sum(SIZES)) + std[p] * drawn(p, t, w.shape)
        w = w - step * (1 - (t - 1) / T) * slope
        found.append(w)
    return found


def huang(agents, std, s, rho, c_w, row_norm, beta):
    """Noise on the solution of a proximal step at z_p; then w; then the multipliers."""
    w, d, found = np.zeros((4, 3)), 12, []
    z, dual = np.zeros((2, len(agents), 4, 3))
    for t in range(1, T + 1):
        for p, (x, y) in enumerate(agents):
            slope = slope_of(x, y, z[p], math.inf, sum(SIZES)) + 2 * beta / len(agents) * z[p]
            smooth = SIZES[p] / sum(SIZES) * row_norm**2 / 2 + 2 * beta / len(agents)
            eta = 1 / (smooth + math.sqrt(2 * d * t) * s / c_w)
            solution = (rho * w + dual[p] - slope + z[p] / eta) / (rho + 1 / eta)
            z[p] = solution - std[p] / (rho + 1 / eta) * drawn(p, t, w.shape)
        w = (z - dual / rho).mean(0)
        dual += rho * (w - z)
        found.append(w)
    return found


def admm_with_noise_on_steps(agents, std, rho, eta, clip, momentum, beta):
    """OutP of the sound preset: a proximal step linearised at w, noise on its solution; then w; then the duals."""
    w, moved, found = np.zeros((4, 3)), np.zeros((4, 3)), []
    z, dual = np.zeros((2, len(agents), 4, 3))
    for t in range(1, T + 1):
        mu = rho(t) + 1 / eta
        for p, (x, y) in enumerate(agents):
            slope = slope_of(x, y, w, clip, sum(SIZES)) + 2 * beta / len(agents) * w
            solution = (rho(t) * w + dual[p] - slope + z[p] / eta) / mu
            z[p] = solution - std[p] / mu * drawn(p, t, w.shape)
        after = (z - dual / rho(t)).mean(0) + momentum * moved
        w, moved = after, after - w
        dual += rho(t) * (w - z)
        found.append(w)
    return found


def one_message(agents, std, assumed, balance, row_norm):
    """Ridge regression from noisy moments; the penalty with which one half of the release explains the other best.

    `assumed` is the std of the noise of an agent as the server knows it.
    """
    records, labels = sum(SIZES), sum(SIZES) * (1 - 1 / 3)
    upper = np.triu_indices(4)
    length = np.where(upper[0] == upper[1], 1, math.sqrt(2))
    total = np.zeros(22)
    for p, (x, y) in enumerate(agents):
        cross = balance * row_norm * x.T @ (np.eye(3)[y] - 1 / 3)
        total += np.concatenate([length * (x.T @ x)[upper], cross.ravel()]) + std[p] * drawn(p, 1, 22)
    whole = math.sqrt(len(agents)) * assumed
    more = whole * drawn(len(agents), 1, 22)

    def moments(v):
        gram = np.zeros((4, 4))
        gram[upper] = v[:10] / length
        gram += np.triu(gram, 1).T
        cross = v[10:].reshape(4, 3) / (balance * row_norm)
        return gram, cross - cross.mean(1, keepdims=True)

    def solved(gram, cross, penalty):
        d, u = np.linalg.eigh(gram)
        return u @ np.diag(1 / (np.maximum(d, 0) + penalty)) @ u.T @ cross, np.maximum(d, 0)

    noise = whole * math.sqrt(2 * 4)
    top = 4 * (records * row_norm**2 + noise)
    steps = math.ceil(2 * math.log2(top / max(noise / 16, top * 2.0**-30)))
    first, (gram, cross) = moments(total + more), moments(total - more)
    best = (math.inf, 0.0, 0.0, 0.0)
    for n in range(steps + 1):
        penalty = max(top * 2 ** (-n / 2), records * 2 * BETA)
        w, d = solved(*first, penalty)
        square, inner = np.sum(w * (gram @ w)), np.sum(w * cross)
        gain = inner - np.sum(d / (d + penalty)) * max(labels + square - 2 * inner, 0) / records
        best = min(best, (square - 2 * gain, penalty, square, gain))
    _, penalty, square, gain = best
    times = min(max(gain / square, 0.01), 2) if square > 0 else 0.01
    explained = min(max(times * gain / labels, 0), 0.99)
    return [times * 3 / math.sqrt(1 - explained) * solved(*moments(total), penalty)[0]]
