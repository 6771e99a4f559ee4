# %% [markdown]
# # A tour in tables and pictures
#
# Rows are made up here, so that the notebook runs anywhere. Nothing below needs a magic line:
# a result is a table, its `.plot()` is a picture.

# %%
import numpy as np

import discreet as dp

rng = np.random.default_rng(7)
rows = 5_000
branches = [
    "Agriculture, forestry and fishing",
    "Manufacturing",
    "Public administration and defence",
    "Retail",
]
branch = rng.choice(branches, rows, p=[0.1, 0.25, 0.3, 0.35])
age = rng.integers(18, 66, rows)
pay = np.exp(rng.normal(7.2, 0.4, rows) + 0.012 * (age - 40) + 0.15 * (branch == "Manufacturing"))
page = rng.choice(["old", "new"], rows)
bought = rng.random(rows) < np.where(page == "new", 0.33, 0.29)

data = dp.from_arrays(
    {"pay": pay, "age": age, "branch": branch, "page": page, "bought": bought},
    schema={
        "pay": dp.Real(0, 10_000),
        "age": dp.Integer(18, 65),
        "branch": dp.Category(branches),
        "page": dp.Category(["old", "new"]),
        "bought": dp.Boolean(),
    },
    neighbors=dp.Replace(),
)
session = data.open(budget=dp.GDP(3))

# %% [markdown]
# ## Before anything is spent
#
# How wide will the interval be, how wide would it be without privacy, what would more budget buy?

# %%
forecast = dp.preview(session, dp.mean, "pay", spend=dp.GDP(0.1))
forecast

# %%
forecast.plot()

# %%
planned = dp.power(dp.compare, rows=rows, spend=dp.GDP(0.3), baseline=0.29, share=0.33)
planned

# %%
planned.plot()

# %% [markdown]
# ## One number
#
# The light bar is the interval for the population, the dark one holds for these rows alone, the
# grey one is about what sampling alone would leave.

# %%
mean = dp.mean(session, "pay", spend=dp.GDP(0.1))
mean

# %%
mean.plot()

# %%
median = dp.median(session, "pay", spend=dp.GDP(0.3))
median

# %%
median.plot()

# %%
share = dp.proportion(session, "bought", spend=dp.GDP(0.1))
share

# %%
share.plot(title="How many bought")

# %% [markdown]
# ## Distributions

# %%
bars = dp.histogram(session, "pay", bins=[0, 500, 1000, 1500, 2000, 3000, 5000], spend=dp.GDP(0.2))
bars

# %%
bars.plot()

# %%
dp.quantiles(session, "pay", [0.1, 0.25, 0.5, 0.75, 0.9], spend=dp.GDP(0.3))

# %%
dp.ecdf(session, "pay", spend=dp.GDP(0.3)).plot()

# %%
dp.density(session, "age", spend=dp.GDP(0.3)).plot()

# %% [markdown]
# ## Groups

# %%
by_branch = dp.table(session, "pay", by="branch", spend=dp.GDP(0.4))
by_branch

# %%
by_branch.plot()

# %% [markdown]
# ## Tests
#
# Beside the estimates stands the law of the statistic if the hypothesis were true. The p-value is
# the shaded area.

# %%
effect = dp.compare(session, "bought", by="page", spend=dp.GDP(0.3))
effect

# %%
effect.plot()

# %%
independent = dp.independence_test(session, "branch", "page", spend=dp.GDP(0.3))
independent

# %%
independent.plot()

# %%
half = share.test(0.3, alternative="greater")
half

# %%
half.plot()

# %%
numbers = dp.correlation(session, ["pay", "age"], spend=dp.GDP(0.3))
numbers

# %%
numbers.plot()

# %% [markdown]
# ## Choices
#
# Scores are not released. What is known is how far the chosen one can be behind the best.

# %%
order = dp.top(session, "branch", 2, spend=dp.PureDP(0.2))
order

# %%
order.plot()

# %% [markdown]
# ## A regression

# %%
fit = dp.ols(session, "pay ~ age + branch", spend=dp.GDP(1))
fit

# %%
fit.plot()

# %%
fit.plot_ellipse("age", "intercept")

# %%
fit.test(["age"]).plot(title="Does age matter?")

# %% [markdown]
# ## Several pictures on axes of one's own

# %%
import matplotlib.pyplot as plt

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4), layout="constrained")
by_branch.plot(ax=left, title="Pay by branch")
axes = bars.plot(ax=right, title="Pay")
# %% [markdown]
# ## What was promised, and what is left

# %%
from discreet.plots.accounting import plot_budget, plot_tradeoff

plot_budget(session.ledger)

# %%
plot_tradeoff(dp.GDP(3), dp.GDP(1))
