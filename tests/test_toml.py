"""What a TOML text declares survives without its comments."""

from tacit import toml

TEXT = """\
# whose
d = 2020-01-01
e = 2020-01-01T10:00:00Z  # when
f = [1, 2.5, inf, true]
[a."x.y"]
z = "\\u007f\\n # no comment 😀"
[[b]]
q = 1
[[b]]
q = {}
"""


def test_a_plain_text_declares_the_same_in_the_same_order_and_has_no_comment():
    plain = toml.plain(TEXT, "a file")
    found = toml.loads(plain, "a file")
    assert found == toml.loads(TEXT, "a file")
    assert list(found) == ["d", "e", "f", "a", "b"]
    assert "whose" not in plain
    assert toml.plain(plain, "a file") == plain
