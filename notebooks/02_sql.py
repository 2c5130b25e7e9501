# Databricks notebook source
# MAGIC %md
# MAGIC # The catalog in SQL
# MAGIC
# MAGIC The catalog is one Delta table with views on it: whoever can query tables can ask it. This
# MAGIC notebook needs a catalog with something in it; `01_quickstart` makes one. `docs/sql.md` in
# MAGIC the repository lists every view and column, and many more queries.

# COMMAND ----------

dbutils.widgets.text("location", "main.strata_quickstart", "Catalog: a schema or a path")
dbutils.widgets.text("schema", "", "Schema to look at: a fingerprint or a beginning of one")

# COMMAND ----------

from catalog import Catalog

location = dbutils.widgets.get("location")
catalog = Catalog.open(spark, location, read_only=True)
if catalog.location.path is None:
    spark.sql(f"USE {location}")  # the views and functions are there already
else:
    print(catalog.inspect.create_views())  # temporary ones, for a catalog at a path
    print(catalog.inspect.create_functions())

# COMMAND ----------

# MAGIC %md
# MAGIC ## What is there

# COMMAND ----------

# MAGIC %sql
# MAGIC SELECT datasource, num_segments, num_schemas, num_rows, changed_at
# MAGIC FROM datasources
# MAGIC ORDER BY num_rows DESC

# COMMAND ----------

# MAGIC %sql
# MAGIC SELECT s.datasource, s.fingerprint, count(*) AS segments, sum(s.num_rows) AS num_rows
# MAGIC FROM segments AS s
# MAGIC GROUP BY s.datasource, s.fingerprint
# MAGIC ORDER BY segments DESC

# COMMAND ----------

# MAGIC %md
# MAGIC ## Functions
# MAGIC
# MAGIC `schema_of(segment_id)` gives a segment's schema as DDL; `segments_with(fingerprint)` and
# MAGIC `columns_of(fingerprint)` take any beginning of a fingerprint, from four digits on.

# COMMAND ----------

# MAGIC %sql
# MAGIC SELECT segment_id, schema_of(segment_id) AS ddl
# MAGIC FROM segments
# MAGIC ORDER BY segment_id
# MAGIC LIMIT 10

# COMMAND ----------

some = dbutils.widgets.get("schema") or catalog.schemas().first()["fingerprint"]
schema = catalog.schema(some)  # any unique beginning will do
display(spark.sql(f"SELECT * FROM segments_with('{schema.fingerprint}')"))

# COMMAND ----------

display(spark.sql(f"SELECT path, type, nullable FROM columns_of('{schema.fingerprint}')"))

# COMMAND ----------

# MAGIC %md
# MAGIC ## How columns differ within a datasource

# COMMAND ----------

# MAGIC %sql
# MAGIC SELECT s.datasource, c.path, array_sort(collect_set(c.type)) AS types,
# MAGIC        count(DISTINCT s.segment_id) AS segments
# MAGIC FROM segments AS s JOIN schema_columns AS c ON s.fingerprint = c.fingerprint
# MAGIC GROUP BY s.datasource, c.path
# MAGIC ORDER BY s.datasource, segments DESC, c.path

# COMMAND ----------

# MAGIC %md
# MAGIC ## As it was
# MAGIC
# MAGIC Each view is also a method that gives a frame, pinned to a version or a time.

# COMMAND ----------

before = max(0, catalog.version - 2)
display(catalog.segments(as_of=before).groupBy("datasource").count())

# COMMAND ----------

# MAGIC %md
# MAGIC What each of the last versions changed:

# COMMAND ----------

display(catalog.audit.growth(before).orderBy("version"))
