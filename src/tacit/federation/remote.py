"""The engine of a federation: questions go out to sites, answers come in, and some are missing."""

from __future__ import annotations

from tacit.federation.carrier import Carrier

__all__ = ["Carrier"]
