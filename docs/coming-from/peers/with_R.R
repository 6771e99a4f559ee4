# needs: R
# == setup
people <- read.csv("census.csv", na.strings = "")
people$graduate <- people$education == "degree"

# == mean: A mean with an interval
print(t.test(people$income)$conf.int)
print(mean(people$income, na.rm = TRUE))

# == table: Means by group
print(aggregate(income ~ region, people, function(x) c(n = length(x), mean = mean(x))))

# == share: A share with an interval
print(prop.test(sum(people$graduate), nrow(people))$conf.int)

# == median: A median and quantiles
print(quantile(people$income, c(0.25, 0.5, 0.75), na.rm = TRUE))

# == histogram: Counts by bins
ages <- cut(people$age, c(18, 30, 45, 60, 91), right = FALSE)
print(table(ages))

# == compare: Two groups, one number
print(t.test(income ~ sex, people)[c("conf.int", "p.value")])

# == ab: Two groups, yes or no
print(prop.test(table(people$sex, !people$graduate))[c("estimate", "conf.int", "p.value")])

# == correlation: How columns go together
print(cor(people[c("age", "hours", "income")], use = "complete.obs"), digits = 2)

# == regression: A regression
print(summary(lm(income ~ age + education, people))$coefficients, digits = 3)

# == logistic: A yes or no explained
fit <- glm((sex == "male") ~ hours + income, binomial, people)
print(summary(fit)$coefficients, digits = 3)
