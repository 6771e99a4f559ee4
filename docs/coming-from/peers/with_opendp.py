# needs: opendp==0.16.0, scikit-learn
# == setup
import csv

import opendp.prelude as dp

dp.enable_features("contrib", "honest-but-curious")
people = [*csv.DictReader(open("census.csv"))]
incomes = [float(row["income"]) for row in people if row["income"]]


def account(rows, epsilon, questions, kind=float):
    """A compositor over one column."""
    atoms = dp.atom_domain(T=float, nan=False) if kind is float else dp.atom_domain(T=kind)
    return dp.Context.compositor(
        data=rows,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=epsilon),
        split_evenly_over=questions,
        domain=dp.vector_domain(atoms),
    )


# == mean: A mean with an interval
session = account(incomes, 1.0, 1)
query = session.query().clamp((0.0, 200_000.0)).resize(7600, constant=50_000.0).mean().laplace()
print(query.release(), "noise of scale", query.param())  # the interval is yours to work out

# == table: Means by group
for region in ("E", "N", "S", "W"):  # a sum and a count each, and a division of your own
    rows = [float(row["income"]) for row in people if row["income"] and row["region"] == region]
    session = account(rows, 1.0, 2)
    total = session.query().clamp((0.0, 200_000.0)).sum().laplace().release()
    print(region, total / session.query().count().laplace().release())

# == share: A share with an interval
session = account([row["education"] for row in people], 1.0, 1, str)
print(session.query().count_by_categories(["school", "vocational", "degree"]).laplace().release())

# == median: A median and quantiles
steps = [float(place) for place in range(0, 200_001, 500)]
space = (dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance())
for share in (0.25, 0.5, 0.75):
    pick = dp.m.make_private_quantile(*space, dp.max_divergence(), steps, share, 3.0)
    print(share, pick(incomes), "for epsilon", pick.map(1))

# == histogram: Counts by bins
ages = [int(row["age"]) for row in people]
session = account(ages, 1.0, 1, int)
print(session.query().find_bin([30, 45, 60]).count_by_categories([0, 1, 2, 3]).laplace().release())

# == compare: Two groups, one number
# Two means as above; no test, no interval of the difference.

# == ab: Two groups, yes or no
both = [f"{row['sex']}, {row['education'] == 'degree'}" for row in people]
cells = ["female, False", "female, True", "male, False", "male, True"]
session = account(both, 1.0, 1, str)
print(session.query().count_by_categories(cells).laplace().release())  # the test is yours to make

# == correlation: How columns go together
# A private covariance matrix of standardised columns: by the eigendecomposition of opendp.extras.

# == regression: A regression
# opendp.extras.sklearn has one column by Theil and Sen's slopes; no standard errors.

# == logistic: A yes or no explained
# None.
