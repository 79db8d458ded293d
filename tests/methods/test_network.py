"""Networks of agents: who is linked to whom, and the means that agents take of their neighbours."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import IncompatibleError, SpecError
from tacit.methods.network import MOST_LINKS, Network, circulant, path, star


def mixing(network):
    """M: the means of the rows of the unit matrix."""
    return network.means(np.eye(network.n_agents)[:, :, None], range(network.n_agents), network.bound)[:, :, 0]


def laplacian(network):
    found = np.zeros((network.n_agents,) * 2)
    for p, q in network.links:
        found[[p, q], [p, q]] += 1
        found[[p, q], [q, p]] -= 1
    return found


@st.composite
def networks(draw):
    """A random tree, and random links more."""
    n = draw(st.integers(1, 12))
    tree = {(draw(st.integers(0, p - 1)), p) for p in range(1, n)}
    pairs = [(p, q) for q in range(n) for p in range(q)]
    more = draw(st.lists(st.sampled_from(pairs), max_size=20)) if pairs else []
    return Network(n, tuple(sorted(tree | set(more))))


@given(networks())
def test_a_mean_of_neighbours_keeps_the_mean_of_all_and_never_overshoots(network):
    m = mixing(network)
    assert (m == m.T).all()
    assert m.min() >= 0
    np.testing.assert_allclose(m.sum(0), 1, atol=1e-14)
    values = np.linalg.eigvalsh(m)
    assert values[0] > -1e-12
    assert (values > 1 - 1e-9).sum() == 1  # connected: nothing but a common model is left as it is
    linked = m - np.diag(m.diagonal()) > 0
    assert (linked == (laplacian(network) < 0)).all()


@given(networks(), st.integers(0, 10**6))
def test_the_means_take_a_share_of_the_laplacian_off_and_each_agent_has_its_own_to_the_last_bit(network, seed):
    z = np.random.default_rng(seed).normal(size=(network.n_agents, 3, 2))
    expected = z - np.einsum("pq,qjk->pjk", laplacian(network), z) / network.bound
    together = network.means(z, range(network.n_agents), network.bound)
    np.testing.assert_allclose(together, expected, atol=1e-12)
    for p in range(network.n_agents):
        np.testing.assert_array_equal(network.means(z, [p], network.bound), together[[p]])


@given(networks())
def test_no_eigenvalue_of_the_laplacian_exceeds_the_bound(network):
    assert np.linalg.eigvalsh(laplacian(network))[-1] <= network.bound + 1e-9


@given(st.integers(1, 40), st.integers(2, 40))
def test_on_a_circle_everybody_has_as_many_neighbours_as_asked_for(n, degree):
    wanted = min(degree, n - 1)
    if n * wanted % 2:
        with pytest.raises(SpecError, match=f"both numbers are odd: set method.degree = {wanted + 1}"):
            circulant(n, degree)
        return
    network = circulant(n, degree)
    assert [len(own) for own in network.neighbours] == n * [wanted]
    assert all(((q - p) % n in {(q - 0) % n for q in network.neighbours[0]}) for p, q in network.links)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 9, 10])
def test_where_all_are_linked_to_all_the_mean_of_neighbours_is_the_mean(n):
    np.testing.assert_allclose(mixing(circulant(n, n - 1)), 1 / n, atol=1e-15)


def test_the_networks_that_have_names():
    assert circulant(5, 2).links == ((0, 1), (0, 4), (1, 2), (2, 3), (3, 4))
    assert circulant(10, 4).neighbours[0] == (1, 3, 7, 9)  # 10^(1/2) is nearly 3
    assert path(4).links == ((0, 1), (1, 2), (2, 3))
    assert star(4).neighbours == ((1, 2, 3), (0,), (0,), (0,))
    np.testing.assert_allclose(mixing(path(3)) * 3, [[2, 1, 0], [1, 1, 1], [0, 1, 2]], atol=1e-15)
    np.testing.assert_allclose(mixing(circulant(8, 2))[0] * 4, [2, 1, 0, 0, 0, 0, 0, 1], atol=1e-15)


def test_some_long_links_let_many_agents_agree_sooner_than_as_many_short_ones():
    """The share of a disagreement that is left after a mean, by the second largest eigenvalue."""
    short = Network(200, tuple(sorted({tuple(sorted((p, (p + s) % 200))) for p in range(200) for s in (1, 2, 3, 4)})))
    left = [np.linalg.eigvalsh(mixing(one))[-2] for one in (circulant(200, 8), short)]
    assert left[0] < 0.86
    assert left[1] > 0.99


@pytest.mark.parametrize(("n", "links", "says"), [
    (4, ((0, 1), (2, 3)), "2 of 4 agents, as agent 2, are not reached from agent 0"),
    (2, (), "the network is not connected"),
    (3, ((0, 1), (1, 0), (1, 2)), "is named once"),
    (3, ((0, 1), (1, 1), (1, 2)), "joins two of the agents 0 .. 2"),
    (3, ((0, 1), (1, 3)), "joins two of the agents 0 .. 2"),
])  # fmt: skip
def test_links_that_are_no_connected_network_are_refused(n, links, says):
    with pytest.raises(SpecError, match=says):
        Network(n, links)


def test_pairs_do_not_reach_each_other():
    with pytest.raises(SpecError, match=r"not connected.*method.degree = 2 makes a ring"):
        circulant(6, 1)


def test_a_network_with_too_many_links_is_refused():
    with pytest.raises(IncompatibleError, match=f"more than {MOST_LINKS} links: set a smaller method.degree"):
        circulant(2000, 2000)
