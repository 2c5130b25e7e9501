# Databricks notebook source
# MAGIC %md
# MAGIC # The platform's metadata
# MAGIC
# MAGIC Databases and where their data lies, schemas that have names and versions, contracts, who
# MAGIC changed what, settings, tasks, retention, backups: all of it is in the same table as the
# MAGIC segments and changes by the same commits.
# MAGIC
# MAGIC Install `strata-catalog` on the cluster first. `docs/objects.md` in the repository has the
# MAGIC rules, and README.md names the pages on the rest.

# COMMAND ----------

dbutils.widgets.text("location", "main.strata_platform", "Catalog: a schema or a path")
dbutils.widgets.text("backup", "/Volumes/main/strata_platform/backups/today", "Backup: a path")

# COMMAND ----------

from datetime import UTC, datetime, timedelta

from catalog import Catalog, Contract, Object, Segment
from catalog.errors import ContractViolation, IncompatibleSchema, RuleViolation
from catalog.objects.platform import PLATFORM

catalog = Catalog.open(
    spark, dbutils.widgets.get("location"), actor="platform", session="notebook 06"
)
catalog.drop(datasource="sales_orders", reason="the notebook begins anew")
catalog.contracts.remove("sales_orders", reason="the notebook begins anew")
catalog.objects.remove(["database/sales", "datastore/hot", "datastore/cold"], cascade=True)
print(f"{catalog.location}, version {catalog.version}")

# COMMAND ----------

# MAGIC %md
# MAGIC ## Objects with declared types
# MAGIC
# MAGIC A declaration says where keys stand, what bodies hold and which rules objects keep. What
# MAGIC only holds together is put together: a database has exactly one primary datastore.

# COMMAND ----------

catalog.objects.declare(PLATFORM, reason="one set of rules for all writers")
catalog.objects.put(
    [
        Object("database/sales"),
        Object("datastore/hot", {"location": "/data/hot"}),
        Object("datastore/cold", {"location": "/data/cold"}),
        Object("datastore_link/sales/hot", {"role": "primary"}),
        Object("datastore_link/sales/cold", {"role": "archive"}),
        Object("table/sales/orders", datasource="sales_orders"),
        Object("index/sales/orders/pk", {"columns": ["id"], "primary": True}),
    ],
    reason="described",
)
try:
    catalog.objects.ensure(Object("datastore_link/sales/cold", {"role": "primary"}))
except RuleViolation as error:
    broken = error
print(broken.values["rule"], "-", broken.message)

# COMMAND ----------

catalog.inspect.create_views()

# COMMAND ----------

# MAGIC %sql
# MAGIC SELECT database, datastore, role FROM datastore_links WHERE database = 'sales' ORDER BY role

# COMMAND ----------

# MAGIC %md
# MAGIC ## A schema with a name
# MAGIC
# MAGIC Versions count up, each with what it breaks. Two writers that start from one version end in
# MAGIC one that holds both.

# COMMAND ----------

name = f"sales_order_{catalog.version}"
catalog.names.register(name, "id BIGINT NOT NULL, amount INT", mode="backward")
catalog.names.register(name, "id BIGINT NOT NULL, amount INT, note STRING", base=1)
joined = catalog.names.register(name, "id BIGINT NOT NULL, amount BIGINT", base=1)
try:
    catalog.names.register(name, "id STRING NOT NULL")
except IncompatibleSchema as error:
    refused = error
print(joined.version, joined.merged, catalog.names.get(name).schema.ddl)
print(refused.message)

# COMMAND ----------

# MAGIC %md
# MAGIC ## A contract
# MAGIC
# MAGIC Whatever writes segments is checked by it from the moment it is set, also what is under way
# MAGIC in other processes.

# COMMAND ----------

order = catalog.names.get(name).schema
catalog.contracts.set(
    "sales_orders",
    Contract(schema=order, enforcement="subset", max_rows=1_000_000),
    reason="agreed with the readers",
)
today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
catalog.publish(
    [
        Segment(
            f"sales_orders/{day}",
            order,
            100,
            ends_at=today - timedelta(days=30 * day),
        )
        for day in range(4)
    ],
    reason="first load",
)
try:
    catalog.publish([Segment("sales_orders/odd", "id STRING, colour STRING", 5)])
except ContractViolation as error:
    violated = error
print(violated.message)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Who changed what
# MAGIC
# MAGIC Every commit has its callers, with actor, reason, run and session. The history of a key goes
# MAGIC on past the log when it was rolled into the table `audit`; `maintain` does that.

# COMMAND ----------

rolled = catalog.audit.roll()
display(
    catalog.audit.history(10, key="table/sales/orders").select(
        "version", "change", "verb", "actors", "reasons", "sessions"
    )
)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Settings and tasks
# MAGIC
# MAGIC Defaults can be stored in the catalog, for everybody who opens it. Long work can be a task:
# MAGIC if its process dies, the next one goes on after the last step that is complete.

# COMMAND ----------

catalog.settings.set("cleanup.grace", "2d", reason="schemas may go sooner here")
task = catalog.tasks.run("cleanup", {}, reason="nightly")
catalog.settings.unset("cleanup.grace")
display(catalog.tasks.list().select("name", "state", "steps_done", "attempt").limit(5))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Retention
# MAGIC
# MAGIC A rule is an object. The dry run says what would go.

# COMMAND ----------

catalog.objects.put(
    Object("retention/database/sales", {"max_age_days": 45, "keep_at_least": 1, "action": "drop"})
)
would = catalog.retention.apply(datasources=["sales_orders"], dry_run=True)
before = catalog.version
done = catalog.retention.apply(datasources=["sales_orders"], reason="45 days")
print(f"{done.dropped} segments are older than 45 days")

# COMMAND ----------

# MAGIC %md
# MAGIC ## Back again, and backups
# MAGIC
# MAGIC A rollback is an ordinary commit; a backup is one version, checked on the way out and in.

# COMMAND ----------

look = catalog.backups.rollback(before, dry_run=True)
back = catalog.backups.rollback(before, reason="they are needed after all")
saved = catalog.backups.create(dbutils.widgets.get("backup"), reason="before the weekend")
print(f"{back.rows} rows came back; {saved.rows} rows of version {saved.version} are saved")
display(catalog.segments().where("datasource = 'sales_orders'").orderBy("segment_id"))

# COMMAND ----------

checked = catalog.verify()
assert checked.ok, checked
