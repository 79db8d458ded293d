"""Estimators of scikit-learn over records that many agents keep to themselves (extra `sklearn`; docs/estimator.md).

    declared    what is public: bounds, classes, the range of a number, a schema; and records as numbers by these
    dictionary  a schema that is a Python dictionary
    refusals    errors as scikit-learn expects them, without contents of records
    agents      group labels -> who holds which record
    base        `fit`: parameters -> a spec and a federation -> a model
    spent       what a fit has cost, and its rounds, without what a release must not show
    notes       what would make the model better, or keeps it from release
    repeated    count the fits on the same records, and warn of their total cost
    classifier, regressor    the two estimators
"""

from __future__ import annotations

from tacit.errors import missing_extra

try:
    import sklearn  # noqa: F401
except ImportError as error:
    raise missing_extra("the estimators need scikit-learn", "sklearn") from error

from tacit.estimator.classifier import PrivateFederatedClassifier
from tacit.estimator.regressor import PrivateFederatedRegressor
from tacit.estimator.spent import PrivacySpent

__all__ = ["PrivacySpent", "PrivateFederatedClassifier", "PrivateFederatedRegressor"]
