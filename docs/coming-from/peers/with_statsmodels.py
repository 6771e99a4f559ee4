# needs: statsmodels==0.15.0, pandas
# == setup
import numpy as np
import pandas as pd
import statsmodels.api as sm
import statsmodels.formula.api as smf
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

people = pd.read_csv("census.csv")
graduate = people.education == "degree"

# == mean: A mean with an interval
income = DescrStatsW(people.income.dropna())
print(income.mean, income.tconfint_mean())

# == table: Means by group
print(people.groupby("region").income.agg(["count", "mean"]))

# == share: A share with an interval
print(graduate.mean(), proportion_confint(graduate.sum(), len(people), method="wilson"))

# == median: A median and quantiles
print(people.income.quantile([0.25, 0.5, 0.75]))

# == histogram: Counts by bins
print(np.histogram(people.age, bins=[18, 30, 45, 60, 91])[0])

# == compare: Two groups, one number
men, women = (people[people.sex == sex].income.dropna() for sex in ("male", "female"))
both = CompareMeans(DescrStatsW(men), DescrStatsW(women))
print(both.tconfint_diff(usevar="unequal"), both.ttest_ind(usevar="unequal")[1])

# == ab: Two groups, yes or no
count = graduate.groupby(people.sex).agg(["sum", "size"])
male, female = count.loc["male"], count.loc["female"]
print(confint_proportions_2indep(male["sum"], male["size"], female["sum"], female["size"]))

# == correlation: How columns go together
print(people[["age", "hours", "income"]].corr().round(2))

# == regression: A regression
fit = smf.ols("income ~ age + C(education)", people).fit(cov_type="HC1")
print(fit.summary().tables[1])

# == logistic: A yes or no explained
people["male"] = (people.sex == "male").astype(int)
print(smf.logit("male ~ hours + income", people).fit(disp=0).summary().tables[1])
