# needs: diffprivlib==0.6.6, scikit-learn==1.7.2, pandas
# == setup
import diffprivlib as dpl
import numpy as np
import pandas as pd

people = pd.read_csv("census.csv")
income = people.income.dropna().to_numpy()
account = dpl.BudgetAccountant(epsilon=10, delta=0)
given = {"epsilon": 1, "accountant": account, "random_state": 1}

# == mean: A mean with an interval
print(dpl.tools.mean(income, bounds=(0, 200_000), **given))  # a number: there is no interval

# == table: Means by group
for region in ("E", "N", "S", "W"):  # groups share no rows: the accountant adds them up all the same
    rows = people[people.region == region].income.dropna()
    print(region, dpl.tools.mean(rows, bounds=(0, 200_000), **{**given, "epsilon": 0.25}))

# == share: A share with an interval
degrees = (people.education == "degree").to_numpy()
print(dpl.tools.mean(degrees.astype(float), bounds=(0, 1), **given))

# == median: A median and quantiles
print(dpl.tools.quantile(income, [0.25, 0.5, 0.75], bounds=(0, 200_000), **given))

# == histogram: Counts by bins
bins = [18, 30, 45, 60, 91]
print(dpl.tools.histogram(people.age, bins=bins, range=(18, 91), **given)[0])

# == compare: Two groups, one number
for sex in ("male", "female"):  # two means; no test
    rows = people[people.sex == sex].income.dropna()
    print(sex, dpl.tools.mean(rows, bounds=(0, 200_000), **{**given, "epsilon": 0.5}))

# == ab: Two groups, yes or no
for sex in ("male", "female"):  # two shares; no test
    rows = degrees[people.sex == sex].astype(float)
    print(sex, dpl.tools.mean(rows, bounds=(0, 1), **{**given, "epsilon": 0.5}))

# == correlation: How columns go together
rows = people[["age", "hours", "income"]].dropna()
low, high = [18, 0, 0], [90, 80, 200_000]
pca = dpl.models.PCA(3, bounds=(low, high), data_norm=200_100, **given).fit(rows.to_numpy())
print(pca.explained_variance_ratio_.round(3))  # principal components, no correlations

# == regression: A regression
rows = people.dropna(subset=["income", "age", "education"])
levels = pd.get_dummies(rows.education)[["vocational", "degree"]].astype(float)
x, y = levels.assign(age=rows.age).to_numpy(), rows.income.to_numpy()
line = dpl.models.LinearRegression(
    bounds_X=([0, 0, 18], [1, 1, 90]), bounds_y=(0, 200_000), **given
).fit(x, y)
print(line.intercept_, line.coef_)  # no standard errors

# == logistic: A yes or no explained
rows = people.dropna(subset=["sex", "hours", "income"])
x = (rows[["hours", "income"]] / [80, 200_000]).to_numpy()
fit = dpl.models.LogisticRegression(data_norm=2**0.5, **given).fit(x, rows.sex == "male")
print(fit.intercept_, fit.coef_)  # no standard errors
print(account.total())
