# needs: scikit-learn==1.9.1, pandas, scipy
# == setup
import numpy as np
import pandas as pd
from scipy import stats
from sklearn.linear_model import LinearRegression, LogisticRegression

people = pd.read_csv("census.csv")
graduate = people.education == "degree"

# == mean: A mean with an interval
income = people.income.dropna()
print(income.mean(), stats.t.interval(0.95, len(income) - 1, income.mean(), stats.sem(income)))

# == table: Means by group
print(people.groupby("region").income.agg(["count", "mean"]))

# == share: A share with an interval
print(stats.binomtest(int(graduate.sum()), len(people)).proportion_ci(method="wilson"))

# == median: A median and quantiles
print(np.quantile(income, [0.25, 0.5, 0.75]))

# == histogram: Counts by bins
print(np.histogram(people.age, bins=[18, 30, 45, 60, 91])[0])

# == compare: Two groups, one number
men, women = (people[people.sex == sex].income.dropna() for sex in ("male", "female"))
test = stats.ttest_ind(men, women, equal_var=False)
print(test.pvalue, test.confidence_interval())

# == ab: Two groups, yes or no
print(stats.chi2_contingency(pd.crosstab(people.sex, graduate)).pvalue)

# == correlation: How columns go together
print(people[["age", "hours", "income"]].corr().round(2))

# == regression: A regression
rows = people.dropna(subset=["income", "age", "education"])
levels = pd.get_dummies(rows.education)[["vocational", "degree"]]
line = LinearRegression().fit(levels.assign(age=rows.age), rows.income)
print(line.intercept_, dict(zip(line.feature_names_in_, line.coef_.round(1))))

# == logistic: A yes or no explained
rows = people.dropna(subset=["sex", "hours", "income"])
scaled = rows[["hours", "income"]] / [80, 200_000]
fit = LogisticRegression(C=np.inf).fit(scaled, rows.sex == "male")
print(fit.intercept_, fit.coef_)
