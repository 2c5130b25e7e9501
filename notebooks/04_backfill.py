# Databricks notebook source
# MAGIC %md
# MAGIC # Schemas that nobody published
# MAGIC
# MAGIC A segment may come to the catalog before anybody knows its schema, and data may lie in files
# MAGIC that nobody has described. This notebook lets files say themselves what they hold: when they
# MAGIC are published, when a backfill runs, and when somebody asks. In the end a job announces a
# MAGIC segment that it still writes.
# MAGIC
# MAGIC Install `strata-catalog` on the cluster first. On a cluster of several nodes give a folder
# MAGIC for the files that all of them see, such as `/Volumes/main/default/files/readings`.
# MAGIC `docs/backfill.md` in the repository has the rules.

# COMMAND ----------

dbutils.widgets.text("location", "main.strata_backfill", "Catalog: a schema or a path")
dbutils.widgets.text("files", "", "Folder for Parquet files; a temporary one if empty")

# COMMAND ----------

import tempfile
from pathlib import Path

from catalog import Catalog, Segment, Settings

location = dbutils.widgets.get("location")
files = dbutils.widgets.get("files") or f"file:{tempfile.mkdtemp(prefix='strata-')}"
settings = Settings(announcements=f"{files}/announcements")
catalog = Catalog.open(spark, location, actor="backfill", settings=settings)
catalog.drop(datasource="readings", reason="the notebook begins anew")
print(f"{catalog.location}, version {catalog.version}; files in {files}")

# COMMAND ----------

# MAGIC %md
# MAGIC ## Files
# MAGIC
# MAGIC Six days of readings, with a new column from the fifth day on. The files of the third and of
# MAGIC the sixth day are broken.

# COMMAND ----------

import pyarrow as pa
import pyarrow.parquet as pq

folder = Path(files.removeprefix("file:"))  # as Python names it


def write_day(day, **more):
    path = folder / "days" / f"{day}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"sensor": ["a", "b"], "value": [1.5, 2.5], **more}), path)


for day in (1, 2, 4):
    write_day(day)
write_day(5, unit=["C", "C"])
for day in (3, 6):
    (folder / "days" / f"{day}.parquet").write_text("this is no Parquet")

# COMMAND ----------

# MAGIC %md
# MAGIC ## Publish files
# MAGIC
# MAGIC The executors read the footers: schema, rows and bytes. A broken file is reported, and the
# MAGIC rest goes on. The same again publishes only what is new.

# COMMAND ----------

published = catalog.publish_files("readings", f"{files}/days/[1-3].parquet", reason="first load")
print(f"version {published.version}: {published.published} of {published.files} files published")
display(
    spark.createDataFrame(
        [(problem.path, problem.reason) for problem in published.broken],
        "path STRING, reason STRING",
    )
)

# COMMAND ----------

display(catalog.inspect.segment_schemas().where("datasource = 'readings'").orderBy("segment_id"))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Publish without a schema
# MAGIC
# MAGIC Who is in haste gives the location alone. The segment is there for everybody, and what is
# MAGIC not known of it can be found later.

# COMMAND ----------

catalog.publish(
    [
        Segment(f"readings/{day}.parquet", location=f"{files}/days/{day}.parquet")
        for day in (4, 5, 6)
    ],
    reason="in haste",
)
waiting = catalog.inspect.segments_without_schema().where("datasource = 'readings'")
display(waiting.select("segment_id", "location", "quarantined").orderBy("segment_id"))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Ask all the same
# MAGIC
# MAGIC A cache with `resolve=True` reads the file of such a segment when somebody asks, and answers
# MAGIC at once. The answer is *pending* until it is stored in the background, *backfilled* until a
# MAGIC poll has seen the commit, and *published* then.

# COMMAND ----------

cache = catalog.cache(datasources=["readings"], resolve=True, realtime=True)
asked = "readings/5.parquet"
print(cache.schema_of(asked).ddl)
places = [("when it is asked for", cache.place(asked))]
cache.flush()  # only so that we see it: the background stores it anyway
places.append(("when it is stored", cache.place(asked)))
cache.poll()
places.append(("after a poll", cache.place(asked)))
display(spark.createDataFrame(places, "moment STRING, place STRING"))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Backfill
# MAGIC
# MAGIC A job for all that nobody asked for. It may be stopped and run again at any time. A segment
# MAGIC whose data does not say its schema goes into quarantine, and is tried again after five
# MAGIC minutes, then after ten, up to a day.

# COMMAND ----------

steps = []
filled = catalog.backfill(
    datasources=["readings"], batch=1, progress=steps.append, reason="nightly"
)
print(f"{filled.completed} completed, {len(filled.quarantined)} in quarantine")
display(
    spark.createDataFrame(
        [(step.what, step.done, step.total) for step in steps],
        "what STRING, done INT, total INT",
    )
)

# COMMAND ----------

quarantine = catalog.inspect.segments_without_schema().where(
    "datasource = 'readings' AND quarantined"
)
display(quarantine.select("segment_id", "reason", "attempts", "retry_at"))

# COMMAND ----------

# MAGIC %md
# MAGIC Mend the file, and do not wait for the pause to be over.

# COMMAND ----------

write_day(6, unit=["C", "F"])
mended = catalog.backfill(datasources=["readings"], retry_quarantined=True, reason="mended")
print(f"{mended.completed} completed, {len(mended.quarantined)} in quarantine")

# COMMAND ----------

# MAGIC %md
# MAGIC ## Announce
# MAGIC
# MAGIC A streaming job says which schema its open segment has so far. Caches with `realtime=True`
# MAGIC know it from their next poll on. Nothing is committed until the segment is closed.

# COMMAND ----------

open_segment = "readings/7.parquet"
seen = []


def look(moment):
    cache.poll()
    columns = cache.schema_of(open_segment).ddl
    seen.append((moment, cache.place(open_segment), columns, cache.num_rows(open_segment)))


with catalog.announcer("readings-stream", reason="the day is over") as announcer:
    announcer.announce(open_segment, "sensor STRING, value DOUBLE", 1)
    look("announced")
    announcer.announce(open_segment, "sensor STRING, value DOUBLE, unit STRING", 2)
    look("a column came")
    write_day(7, unit=["C", "C"])
    announcer.publish(
        [
            Segment(
                open_segment,
                announcer.announced[open_segment].schema,
                2,
                location=f"{files}/days/7.parquet",
            )
        ]
    )
    look("published")
display(spark.createDataFrame(seen, "moment STRING, place STRING, columns STRING, num_rows BIGINT"))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Counters
# MAGIC
# MAGIC What the cache holds and did. `cache.write_metrics(file)` writes the same for Prometheus.

# COMMAND ----------

from catalog.cache.metrics import gauges_of

display(
    spark.createDataFrame(
        [(gauge.name, float(gauge.value), gauge.text) for gauge in gauges_of(cache.metrics())],
        "name STRING, value DOUBLE, meaning STRING",
    )
)
stopped = cache.stop()
print(f"found and not stored: {stopped.left}")

# COMMAND ----------

checked = catalog.verify(since=0)
print(checked)
display(catalog.read("readings").orderBy("sensor", "value"))
