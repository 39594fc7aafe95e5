"""Ids of schemas that Confluent's serializers put into headers."""

from letterhead.conventions.profile import Profile, Row

__all__ = ["SCHEMA_ID"]

SCHEMA_ID = Profile(
    "schema-id",
    "Confluent Schema Registry: ids in headers",
    "`SchemaId` and `HeaderSchemaIdSerializer` of Confluent's schema-registry and confluent-kafka-python",
    (
        Row("key_schema_id", "__key_schema_id", "binary", "magic byte, id or guid: `lha.schema_id` takes it apart"),
        Row("value_schema_id", "__value_schema_id", "binary", "the same for the value"),
    ),
)
