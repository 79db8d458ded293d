"""The estimator for scikit-learn: handwritten digits of five offices, private for each record, in five lines.

    pip install '.[sklearn]' && python examples/estimator.py

What is declared is public: pixels lie in [0, 16] by how the digits were scanned, 8 x 8 of them make an image, and there
are ten classes. Without `feature_bounds` rows are scaled to norm one, and without `classes` the fit is not private,
because labels were read. Each office has some 270 digits, and adds its own noise: about 73 % of new digits are right.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import tacit


def main():
    x, y = load_digits(return_X_y=True)
    offices = ["north", "east", "south", "west", "centre"]
    office = np.random.default_rng(0).choice(offices, len(y))  # who holds which row
    x, x_test, y, y_test, office, _ = train_test_split(x, y, office, test_size=0.25, random_state=0)

    model = tacit.PrivateFederatedClassifier(
        epsilon=1.0, dp_delta=1e-6, feature_bounds=(0, 16), image_shape=(8, 8), classes=range(10)
    )
    model.fit(x, y, agents=office)
    print(f"accuracy        {model.score(x_test, y_test):.1%}, on {len(y_test)} digits that nobody trained on")
    print(f"guarantee_      {model.guarantee_}")
    print(f"privacy_spent_  {model.privacy_spent_}")
    likely = model.predict_proba(x_test[:1])[0]
    print(f"first digit     a {model.classes_[likely.argmax()]}, with probability {likely.max():.2f}")


if __name__ == "__main__":
    main()
