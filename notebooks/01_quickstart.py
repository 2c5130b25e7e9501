# Databricks notebook source
# MAGIC %md
# MAGIC # Strata in ten minutes
# MAGIC
# MAGIC A catalog says which schema each segment of your data has. This notebook makes one,
# MAGIC publishes segments, looks them up on the driver and on the executors, drops some and
# MAGIC cleans up.
# MAGIC
# MAGIC Install `strata-catalog` on the cluster first. The catalog's location is a schema such as
# MAGIC `main.meta`, or a path such as `/Volumes/main/default/files/meta`.

# COMMAND ----------

dbutils.widgets.text("location", "main.strata_quickstart", "Catalog: a schema or a path")
dbutils.widgets.text("datasource", "orders", "Datasource to play with")

# COMMAND ----------

from datetime import UTC, datetime, timedelta

from catalog import Catalog, Schema, Segment

location = dbutils.widgets.get("location")
datasource = dbutils.widgets.get("datasource")
catalog = Catalog.open(spark, location, actor="quickstart")
print(f"{catalog.location}, version {catalog.version}")

# COMMAND ----------

# MAGIC %md
# MAGIC ## Publish
# MAGIC
# MAGIC Segments and their schemas become visible in one commit, all of them or none. Publishing the
# MAGIC same again changes nothing, so this cell can be run twice.

# COMMAND ----------

first_day = datetime(2024, 1, 1, tzinfo=UTC)
old = Schema.of("order_id BIGINT NOT NULL, amount DECIMAL(10,2)")
new = Schema.of("order_id BIGINT NOT NULL, amount DECIMAL(10,2), currency STRING")
segments = [
    Segment(
        f"{datasource}/{first_day + timedelta(days=day):%Y-%m-%d}",
        old if day < 3 else new,
        num_rows=1000 + day,
        starts_at=first_day + timedelta(days=day),
        ends_at=first_day + timedelta(days=day + 1),
    )
    for day in range(5)
]
result = catalog.publish(segments, reason="quickstart")
print(f"version {result.version}: {result.inserted} inserted, {result.existing} there already")

# COMMAND ----------

display(catalog.segments().where(f"datasource = '{datasource}'"))

# COMMAND ----------

display(catalog.schemas().select("fingerprint", "num_columns", "ddl", "published_at"))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Look up
# MAGIC
# MAGIC A cache holds the whole catalog in memory, at one version. A poll brings it to the newest
# MAGIC one at the cost of what changed.

# COMMAND ----------

cache = catalog.cache()
print(cache.schema_of(f"{datasource}/2024-01-04").ddl)
print(cache.poll())

# COMMAND ----------

# MAGIC %md
# MAGIC On executors, ask a broadcast handle: a million lookups cost less than reading the segments.

# COMMAND ----------

from pyspark.sql import functions as F

handle = cache.broadcast()
fingerprint_of = F.udf(lambda segment_id: handle.fingerprint_of(segment_id), "string")
asked = spark.createDataFrame([(segment.id,) for segment in segments], "segment_id STRING")
answered = asked.withColumn("fingerprint", fingerprint_of("segment_id"))
display(answered)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Drop and clean up
# MAGIC
# MAGIC A dry run first. Schemas that nothing uses any more are retired by a clean-up, and purged by
# MAGIC a later one, after a grace.

# COMMAND ----------

print(catalog.drop(datasource=datasource, ends_at=first_day + timedelta(days=3), dry_run=True))
dropped = catalog.drop(
    datasource=datasource, ends_at=first_day + timedelta(days=3), reason="quickstart"
)
display(catalog.inspect.orphan_schemas().select("fingerprint", "ddl"))

# COMMAND ----------

report = catalog.cleanup(grace=timedelta(0), reason="quickstart")
display(catalog.inspect.retired_schemas().select("fingerprint", "ddl", "retired_at"))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Who did what

# COMMAND ----------

display(catalog.audit.history().select("version", "timestamp", "verb", "actors", "reasons"))

# COMMAND ----------

checked = catalog.verify(since=0)
print(checked)
