"""Ranks of MPI, without MPI: tests/distributed runs them in real processes."""

import sys
from types import ModuleType

import pytest

from tacit.run import ranks


def test_led_is_found_under_its_old_name_with_a_warning(monkeypatch):
    moved = ModuleType("tacit.run.serve")
    moved.led = led = object()
    monkeypatch.setitem(sys.modules, "tacit.run.serve", moved)
    with pytest.warns(DeprecationWarning, match=r"tacit\.run\.ranks\.led is now tacit\.run\.serve\.led"):
        assert ranks.led is led
    with pytest.raises(AttributeError, match="no attribute 'lead_by'"):
        _ = ranks.lead_by
