# Databricks notebook source
# MAGIC %md
# MAGIC # Changes that go together
# MAGIC
# MAGIC An operation prepares a change in parts, from any process, and makes all of it visible in
# MAGIC one commit: at once, or when the application says that it has come so far. This notebook
# MAGIC stages parts from threads, meets a claim, publishes at an epoch, undoes what waits, and
# MAGIC clears up after an owner that is gone.
# MAGIC
# MAGIC Install `strata-catalog` on the cluster first. `docs/operations.md` in the repository has
# MAGIC the rules.

# COMMAND ----------

dbutils.widgets.text("location", "main.strata_operations", "Catalog: a schema or a path")

# COMMAND ----------

from datetime import timedelta

from catalog import Catalog, Object, Segment
from catalog.errors import ClaimConflict, OperationDecided

catalog = Catalog.open(spark, dbutils.widgets.get("location"), actor="operations")
for row in catalog.inspect.operations().where("owner = 'operations' AND state = 'open'").collect():
    catalog.operations.get(row["operation_id"]).abort(reason="the notebook begins anew")
epoch = catalog.operations.stable_epoch + 10
catalog.operations.advance(
    epoch, reason="the notebook begins anew"
)  # what waits from before is applied
catalog.drop(datasource="shop", reason="the notebook begins anew")
catalog.objects.remove(["index/shop", "table/shop"], reason="the notebook begins anew")
print(
    f"{catalog.location}, version {catalog.version}, stable epoch {catalog.operations.stable_epoch}"
)

# COMMAND ----------

# MAGIC %md
# MAGIC ## A table, its index and its data
# MAGIC
# MAGIC An object is a named thing with a body. The index links to the table, and the link keeps the
# MAGIC table's revision.

# COMMAND ----------

old = "id BIGINT, amount INT"
catalog.publish([Segment(f"shop/{day}", old, 100) for day in (1, 2, 3)], reason="first load")
catalog.objects.put(
    [
        Object("table/shop", {"owner": "ann"}, datasource="shop"),
        Object("index/shop", {"column": "id"}, links=["table/shop"]),
    ],
    reason="described",
)
display(catalog.inspect.objects().select("key", "revision", "body", "links").orderBy("key"))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Stage
# MAGIC
# MAGIC Amounts become decimals, in all days at once. Every worker stages its part, in any order,
# MAGIC and only needs the id. Two of them have something to say about the table: that is united.

# COMMAND ----------

from concurrent.futures import ThreadPoolExecutor

new = "id BIGINT, amount DECIMAL(12,2)"
operation = catalog.operation("amounts as decimals", parts=3, reason="cents matter")


def work(part):
    mine = catalog.operations.get(operation.id)
    day = Segment(f"shop/{part + 1}", new, 100)
    table = [
        Object("table/shop", body, datasource="shop")
        for says, body in ((0, {"owner": "ann"}), (2, {"amounts": "decimal"}))
        if says == part
    ]
    return mine.stage(part, publish=[day], put=table, on_existing="replace")


with ThreadPoolExecutor(3) as workers:
    staged = list(workers.map(work, (2, 0, 1)))
status = operation.status()
print(f"{status.state}: parts {status.staged} are there, {status.num_claims} claims")

# COMMAND ----------

# MAGIC %md
# MAGIC What is staged is claimed, and nobody sees it yet.

# COMMAND ----------

claims = catalog.inspect.claims().where(f"operation_id = '{operation.id}'")
display(claims.select("target", "key", "part", "action", "shared").orderBy("target", "key", "part"))

# COMMAND ----------

cache = catalog.cache(datasources=["shop"])
print("shop/1 still has", cache.schema_of("shop/1").ddl)
try:
    catalog.drop(["shop/1"])
except ClaimConflict as error:
    refused = error
print(refused)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Publish
# MAGIC
# MAGIC One commit, whatever the number of parts. The table and its index get one revision each, and
# MAGIC agree. With `wait=True` the call returns when the caches of this catalog have got there.

# COMMAND ----------

published = operation.publish(wait=True, reason="approved")
print(f"version {published.version}: shop/1 has", cache.schema_of("shop/1").ddl)
display(catalog.inspect.objects().select("key", "revision", "body", "links").orderBy("key"))

# COMMAND ----------

changed = catalog.audit.changes(after=published.version - 1, until=published.version)
display(changed.select("version", "kind", "key", "change").orderBy("kind", "key"))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Epochs
# MAGIC
# MAGIC Two operations wait until the application has come so far. One of them is a mistake. Ready
# MAGIC is final, so it is undone by an operation of the opposite at the same epoch.

# COMMAND ----------

month = epoch + 1


def wait_for_month(name, **changes):
    waiting = catalog.operation(name, parts=1)
    waiting.stage(0, **changes)
    waiting.publish(epoch=month)
    return waiting


good = wait_for_month("the fourth day", publish=[Segment("shop/4", new, 100)])
mistake = wait_for_month("a mistake", publish=[Segment("shop/44", new, 100)])
try:
    mistake.abort()
except OperationDecided as error:
    final = error
print(final)
undo = wait_for_month("undo the mistake", drop=["shop/44"])
waiting = catalog.inspect.operations().where("state = 'ready'")
display(waiting.select("name", "state", "epoch", "claims").orderBy("opened_at"))

# COMMAND ----------

step = catalog.operations.advance(month, wait=True, reason="the month is complete")
print(f"stable epoch {step.before} to {step.stable}: {len(step.applied)} operations in one commit")
changed = catalog.audit.changes(after=step.version - 1, until=step.version)
display(changed.where("kind = 'segment'").select("version", "key", "change"))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Recovery
# MAGIC
# MAGIC An owner that dies leaves its claims standing until its lease is over and somebody recovers.
# MAGIC A job does that on a schedule.

# COMMAND ----------

left = catalog.operation("left alone", parts=2, lease=timedelta(milliseconds=1))
left.stage(0, publish=[Segment("shop/5", new, 100)])
report = catalog.operations.recover(reason="nightly")
print("aborted:", [each.name for each in report.aborted], "swept:", len(report.swept))

# COMMAND ----------

mine = catalog.inspect.operations().where("owner = 'operations'").orderBy("opened_at")
display(mine.select("name", "state", "parts", "parts_staged", "epoch", "claims"))

# COMMAND ----------

checked = catalog.verify(since=0)
print(checked)
display(catalog.audit.history(8).select("version", "verb", "actors", "reasons"))
