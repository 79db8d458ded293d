"""Print a CSV of 4,000 invented patients in five hospitals, to try tacit on before you take your own table.

    python examples/patients.py > patients.csv

It has what real tables have: a number, a category, a date, missing cells, and hospitals of different size. Give another
seed to get other patients of the same kind: `python examples/patients.py 1 > new_patients.csv`.
"""

import csv
import sys

import numpy as np

PATIENTS = 4000
HOSPITALS, SHARE = ["north", "east", "south", "west", "harbour"], [0.35, 0.25, 0.2, 0.15, 0.05]
WARDS, RISK = ["surgery", "cardiology", "oncology"], [-0.4, 0.6, 0.9]

rng = np.random.default_rng(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
age = rng.integers(18, 97, PATIENTS)
ward = rng.integers(0, 3, PATIENTS)
day = rng.integers(0, 6 * 365, PATIENTS)  # since 2020-01-01
hospital = rng.choice(HOSPITALS, PATIENTS, p=SHARE)
risk = 0.05 * (age - 60) + np.array(RISK)[ward] - 0.6 * day / 365 / 6 - 0.3
readmitted = np.where(rng.random(PATIENTS) < 1 / (1 + np.exp(-risk)), "yes", "no")
missing = rng.random((2, PATIENTS)) < [[0.05], [0.1]]  # of ages, and of wards

table = csv.writer(sys.stdout, lineterminator="\n")
table.writerow(["age", "ward", "admitted", "hospital", "readmitted"])
for i in range(PATIENTS):
    years = "" if missing[0, i] else age[i]
    where = "" if missing[1, i] else WARDS[ward[i]]
    table.writerow([years, where, np.datetime64("2020-01-01") + day[i], hospital[i], readmitted[i]])
