"""Ryu & Kim (2021) on one page of NumPy: the baseline, ObjT, ObjP and OutP on MNIST, beside tacit's own runs.

    python examples/paper_in_numpy.py

Equation numbers are the paper's. From tacit come the bundled digits, and the second column of what is printed.
Epsilon is for one round here, as the paper states it. The noise of ObjT and ObjP is scaled by the largest record at
hand, so that neither is private: for reading, not for release (docs/guarantees.md).
"""

import math

import numpy as np

import tacit

ROUNDS, EPSILON, DP_DELTA, BETA = 10, 5.0, 1e-6, 1e-6
C1, C2, PERIOD = 2.0, 5.0, 1e4  # of the paper's dynamic penalty, for MNIST
C_W = 10.0  # Huang's bound on the norm of the optimum


def rho_hat(t, epsilon):
    """The dynamic penalty: its inverse is the step."""
    return min(1e9, C1 * 1.2 ** (t // PERIOD) + C2 / epsilon)


def residuals(z, x, y):
    """h(z; x_i) - y_i for every record: softmax less the one-hot label."""
    score = x @ z
    score -= score.max(1, keepdims=True)  # softmax is shift-invariant; keeps exp finite
    h = np.exp(score)
    h /= h.sum(1, keepdims=True)
    h[np.arange(len(y)), y] -= 1
    return h


def trust(w, z, dual, slope, rho, t):
    """(6) and (9): a step from w that stays within 1 / t^2 of z, entry by entry."""
    return np.clip(w + (dual - slope) / rho, z - 1 / t**2, z + 1 / t**2)


def prox(w, z, dual, slope, rho, eta):
    """(5) and (8): argmin_u <slope - dual, u> + rho/2 |u - w|^2 + 1/(2 eta) |u - z|^2."""
    return (rho * w + dual - slope + z / eta) / (rho + 1 / eta)


class Agent:
    """One agent: its records, z_p and lambda_p. Only z_p leaves it."""

    def __init__(self, x, y, n_records, n_agents, n_classes):
        self.x, self.y, self.weight, self.regularization = x, y, 1 / n_records, BETA / n_agents
        self.z = self.dual = np.zeros((x.shape[1], n_classes), np.float32)
        self.norms = np.abs(x).sum(1)

    def ask(self):
        """f'_p(z_p) of (1), and (11b): how far one of these records moves it in l1."""
        a = residuals(self.z, self.x, self.y)
        sensitivity = self.weight * (self.norms * np.abs(a).sum(1)).max()
        return self.weight * (self.x.T @ a) + self.regularization * 2 * self.z, sensitivity


def objective_perturbation(agent, w, rho, t, epsilon, xi, rule):
    """(10), (11a): Laplace noise on the gradient, then the step. Without noise it is the baseline, IADMM-Trust."""
    gradient, sensitivity = agent.ask()
    slope = gradient + (0 if math.isinf(epsilon) else sensitivity / epsilon * xi)
    return rule(w, agent.z, agent.dual, slope, rho, t if rule is trust else 1 / math.sqrt(t))


def output_perturbation(agent, w, rho, t, epsilon, xi):
    """Huang et al. (2019): the step, then Gaussian noise on its result. Pixels in [0, 1] bound a record."""
    n_features, n_classes = agent.z.shape
    bound = math.sqrt(n_features) * math.sqrt(2)  # |x|_2 |h - y|_2
    std = math.sqrt(2 * math.log(1.25 / DP_DELTA)) / epsilon * agent.weight * 2 * bound  # 2: one record is replaced
    curvature = agent.weight * len(agent.x) * n_features / 2 + 2 * agent.regularization
    eta = 1 / (curvature + math.sqrt(2 * n_features * n_classes * t) * std / C_W)
    return prox(w, agent.z, agent.dual, agent.ask()[0], rho, eta) - std * xi / (rho + 1 / eta)


def train(name, shards, n_classes, rounds, epsilon, draw):
    """w after every round. draw(law, agent, t, shape) is noise of scale one."""
    n_records = sum(len(y) for _, y in shards)
    agents = [Agent(x, y, n_records, len(shards), n_classes) for x, y in shards]
    epsilon = math.inf if name == "iadmm-trust" else epsilon
    w = agents[0].z
    for t in range(1, rounds + 1):
        rho = rho_hat(t, epsilon)
        if name != "outp":
            w = np.mean([agent.z - agent.dual / rho for agent in agents], axis=0)  # (4a)
        for p, agent in enumerate(agents):
            xi = draw("normal" if name == "outp" else "laplace", p, t, w.shape).astype(np.float32)
            if name == "outp":
                agent.z = output_perturbation(agent, w, rho, t, epsilon, xi)
            else:
                agent.z = objective_perturbation(agent, w, rho, t, epsilon, xi, prox if name == "objp" else trust)
        if name == "outp":  # Huang et al. move z first
            w = np.mean([agent.z - agent.dual / rho for agent in agents], axis=0)
        for agent in agents:
            agent.dual = agent.dual + rho * (w - agent.z)  # (4c)
        yield w


def main():
    federation = tacit.load("mnist", agents=10)
    shards, test = [(shard.x, shard.y) for shard in federation.shards], federation.test
    rng = np.random.default_rng(0)
    print(f"test error on MNIST, ten agents, epsilon {EPSILON:g} a round, after rounds 1, 2, 5 and {ROUNDS}")
    for name in ("iadmm-trust", "objt", "objp", "outp"):
        draw = lambda law, p, t, shape: getattr(rng, law)(size=shape)  # noqa: ARG005, E731
        models = train(name, shards, federation.n_classes, ROUNDS, EPSILON, draw)
        ours = [np.mean((test.x @ w).argmax(1) != test.y) for w in models]
        values = {"run.rounds": ROUNDS, "run.seed": 0, "run.record_every": 1}
        values |= {} if name == "iadmm-trust" else {"privacy.epsilon": EPSILON}
        result = tacit.train(tacit.preset("paper", name).with_values(values), federation)
        theirs = [row["test_error"] for row in result.rounds]
        for who, errors in ("numpy", ours), ("tacit", theirs):
            print(f"{name:12} {who}  " + "  ".join(f"{errors[t - 1]:7.2%}" for t in (1, 2, 5, ROUNDS)))


if __name__ == "__main__":
    main()
