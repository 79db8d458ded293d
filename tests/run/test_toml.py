"""What is written as TOML is read back, whatever a value holds."""

from hypothesis import example, given
from hypothesis import strategies as st

from tacit import toml

VALUES = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"])), st.booleans(), st.integers(), st.floats(allow_nan=False)
)


@given(VALUES)
@example("a\tb\x7f\x00\"\\\n")
def test_a_value_is_read_back(value):
    assert toml.loads(toml.text({"data.source": value}), "text") == {"data": {"source": value}}
