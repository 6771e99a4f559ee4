# needs: tmlt.analytics==0.21.0, pyspark
# == setup
from pyspark.sql import SparkSession
from tmlt.analytics import AddOneRow, KeySet, PureDPBudget, QueryBuilder, Session

spark = SparkSession.builder.getOrCreate()
people = spark.read.csv("census.csv", header=True, inferSchema=True)
session = Session.from_dataframe(
    PureDPBudget(10), "people", people.fillna({"income": 0}), protected_change=AddOneRow()
)
earners = QueryBuilder("people").filter("income > 0")  # the others gave none
regions = KeySet.from_dict({"region": ["E", "N", "S", "W"]})


def ask(query):
    session.evaluate(query, PureDPBudget(1)).show()


# == mean: A mean with an interval
ask(earners.average("income", low=0, high=200_000))

# == table: Means by group
ask(earners.groupby(regions).average("income", low=0, high=200_000))

# == share: A share with an interval
degrees = KeySet.from_dict({"education": ["school", "vocational", "degree"]})
ask(QueryBuilder("people").groupby(degrees).count())

# == median: A median and quantiles
ask(earners.median("income", low=0, high=200_000))

# == histogram: Counts by bins
decades = KeySet.from_dict({"decade": list(range(10, 100, 10))})
by_decade = QueryBuilder("people").map(
    lambda row: {"decade": row["age"] // 10 * 10}, new_column_types={"decade": "INTEGER"}, augment=True
)
ask(by_decade.groupby(decades).count())

# == compare: Two groups, one number
sexes = KeySet.from_dict({"sex": ["female", "male"]})
ask(earners.groupby(sexes).average("income", low=0, high=200_000))  # no test

# == ab: Two groups, yes or no
ask(QueryBuilder("people").groupby(sexes * degrees).count())  # the test is yours to make

# == correlation: How columns go together
# None.

# == regression: A regression
# None.

# == logistic: A yes or no explained
# None.
