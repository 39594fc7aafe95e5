"""Headers of Debezium's connectors and transformations.

They pass through Connect's header converter. The default one, ``SimpleHeaderConverter``, writes text; with another one
the values are its own, and these types do not hold.
"""

from letterhead.conventions.profile import Profile, Row

__all__ = ["DEBEZIUM", "DEBEZIUM_OUTBOX"]

DEBEZIUM = Profile(
    "debezium",
    "Debezium: context of the connector, and added headers",
    "`DebeziumHeaderProducer` of Debezium 3 (`extended.headers.enabled`), and `ExtractNewRecordState` with "
    "`add.headers=op,source.ts_ms`, each through `SimpleHeaderConverter`",
    (
        Row("connector_logical_name", "__debezium.context.connectorLogicalName", "string", "`topic.prefix`"),
        Row("connector_name", "__debezium.context.connectorName", "string", "type of the connector: `postgresql`"),
        Row("task_id", "__debezium.context.taskId", "string", "task of the connector, a number as text"),
        Row("run_id", "__debezium.context.runId", "string", "a uuid for each start; in later releases only"),
        Row("op", "__op", "string", "`c`, `u`, `d`, `r`, `t`"),
        Row("source_ts", "__source_ts_ms", "timestamp_ms:text", "when the database made the change"),
    ),
)

DEBEZIUM_OUTBOX = Profile(
    "debezium-outbox",
    "Debezium: outbox event router",
    "`EventRouter` of Debezium 3: the id always, the type with `table.fields.additional.placement=type:header:eventType`",
    (
        Row("event_id", "id", "string", "id of the event, to find duplicates by"),
        Row("event_type", "eventType", "string", "its type, under the name that the documentation gives it"),
    ),
)
