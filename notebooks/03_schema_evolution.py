# Databricks notebook source
# MAGIC %md
# MAGIC # Schemas that change
# MAGIC
# MAGIC A datasource lives for years, and its schema does not stay the same. This notebook publishes
# MAGIC three days of orders with three schemas, over Parquet files that it writes, and shows what
# MAGIC changed, what the segments have in common, and how they are read as one frame.
# MAGIC
# MAGIC Install `strata-catalog` on the cluster first. On a cluster of several nodes give a folder
# MAGIC for the files that all of them see, such as `/Volumes/main/default/files/orders`.
# MAGIC `docs/schemas.md` in the repository has the rules.

# COMMAND ----------

dbutils.widgets.text("location", "main.strata_evolution", "Catalog: a schema or a path")
dbutils.widgets.text("files", "", "Folder for Parquet files; a temporary one if empty")
dbutils.widgets.text("schema", "", "Schema to judge against the history: DDL")

# COMMAND ----------

import tempfile

from catalog import Catalog, CatalogError, Schema, Segment, compatibility, diff, judge, upgrade
from catalog.evolution import Mode

location = dbutils.widgets.get("location")
files = dbutils.widgets.get("files") or f"file:{tempfile.mkdtemp(prefix='strata-')}"
catalog = Catalog.open(spark, location, actor="evolution")
print(f"{catalog.location}, version {catalog.version}; files in {files}")

# COMMAND ----------

# MAGIC %md
# MAGIC ## Three days, three schemas
# MAGIC
# MAGIC Each day has a file with its own columns. `upgrade` gives a frame in a schema: columns are
# MAGIC found by name and cast to wider types.

# COMMAND ----------

days = {
    "2024-01-01": Schema.of("order_id BIGINT NOT NULL, amount INT"),
    "2024-01-02": Schema.of("order_id BIGINT NOT NULL, amount BIGINT, currency STRING"),
    "2024-01-03": Schema.of(
        "order_id BIGINT NOT NULL, amount BIGINT, lines ARRAY<STRUCT<sku: STRING, qty: INT>>"
    ),
}
everything = spark.range(3).selectExpr(
    "id AS order_id",
    "CAST(id * 10 AS INT) AS amount",
    "'EUR' AS currency",
    "array(named_struct('sku', concat('s', id), 'qty', CAST(id AS INT))) AS lines",
)
for day, schema in days.items():
    path = f"{files}/{day}.parquet"
    upgrade(everything, schema, drop=True).coalesce(1).write.mode("overwrite").parquet(path)
    segment = Segment(f"evolving/{day}", schema, num_rows=3, location=path)
    catalog.publish([segment], on_existing="replace", reason="schema evolution")
display(catalog.segments().where("datasource = 'evolving'").select("segment_id", "fingerprint"))

# COMMAND ----------

# MAGIC %md
# MAGIC ## What changed
# MAGIC
# MAGIC *Backward*: readers of the new schema can read old data. *Forward*: readers of the old one
# MAGIC can read new data.

# COMMAND ----------

first, second, third = days.values()
print(diff(first, second))
display(
    spark.createDataFrame(
        [
            (each.path, str(each.kind), each.backward, each.forward, each.reason)
            for each in compatibility(first, second).changes
        ],
        "path STRING, change STRING, backward BOOLEAN, forward BOOLEAN, reason STRING",
    )
)

# COMMAND ----------

# MAGIC %md
# MAGIC ## What the segments have in common
# MAGIC
# MAGIC The schema of a datasource is the merge of its segments' schemas. Each column knows the
# MAGIC types that it was seen with, and how many segments have it.

# COMMAND ----------

found = catalog.datasource_schema("evolving")
print(found.schema.ddl)
display(
    spark.createDataFrame(
        [
            (each.path, each.type, each.nullable, dict(each.types), each.segments)
            for each in found.columns
        ],
        "path STRING, type STRING, nullable BOOLEAN, types MAP<STRING, BIGINT>, segments BIGINT",
    )
)

# COMMAND ----------

# MAGIC %md
# MAGIC Much the same without Python: the view `datasource_columns`.

# COMMAND ----------

display(catalog.inspect.datasource_columns().where("datasource = 'evolving'").orderBy("path"))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Read them as one
# MAGIC
# MAGIC Files are read with their own schemas and given in the merge of all. A column that a file
# MAGIC lacks is null.

# COMMAND ----------

orders = catalog.read("evolving", segment_id="segment_id")
display(orders.orderBy("segment_id", "order_id"))

# COMMAND ----------

# MAGIC %md
# MAGIC A reader of the first schema is refused: amounts of later days might not fit an `int`. A
# MAGIC reader of the second one gets all days.

# COMMAND ----------

try:
    catalog.read("evolving", schema=first)
except CatalogError as error:
    refused = error
    print(error)

# COMMAND ----------

display(catalog.read("evolving", schema=second).orderBy("order_id", "currency"))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Upgrade a frame
# MAGIC
# MAGIC The same for data that is in no catalog: a DataFrame or an Arrow table.

# COMMAND ----------

batch = spark.createDataFrame([(7, 70)], first.struct())
upgraded = upgrade(batch, found.schema)
display(upgraded)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Judge the next schema
# MAGIC
# MAGIC May a schema follow those that are there? The modes are those of schema registries; the
# MAGIC transitive ones ask every schema of the history, the others the last one.

# COMMAND ----------

proposed = dbutils.widgets.get("schema") or "order_id BIGINT NOT NULL, amount BIGINT, note STRING"
judgements = [judge(proposed, found.schemas, mode) for mode in Mode]
display(
    spark.createDataFrame(
        [(str(each.mode), each.ok, "; ".join(map(str, each.breaks))) for each in judgements],
        "mode STRING, allowed BOOLEAN, because STRING",
    )
)
