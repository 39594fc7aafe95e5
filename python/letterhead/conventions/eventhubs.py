"""Properties that Azure IoT Hub and Event Hubs give to consumers of their Kafka endpoint, as AMQP values."""

from letterhead.conventions.profile import Profile, Row

__all__ = ["EVENTHUBS"]

_PROPERTIES = (
    ("device_id", "iothub-connection-device-id", "string", "device that sent the message"),
    ("module_id", "iothub-connection-module-id", "string", "its module"),
    ("auth_method", "iothub-connection-auth-method", "string", "JSON: how it was authenticated"),
    ("auth_generation_id", "iothub-connection-auth-generation-id", "string", "which device of that name it is"),
    ("enqueued_time", "iothub-enqueuedtime", "timestamp_ms", "when IoT Hub received the message"),
    ("message_source", "iothub-message-source", "string", "`Telemetry`, `twinChangeEvents`, …"),
    ("data_schema", "dt-dataschema", "string", "model of a plug and play device"),
    ("data_subject", "dt-subject", "string", "its component"),
)

EVENTHUBS = Profile(
    "eventhubs",
    "Azure IoT Hub and Event Hubs: properties of AMQP messages",
    "Microsoft, IoT Hub message format, system properties of device-to-cloud messages; AMQP 1.0 Part 1 for the bytes. "
    "Properties of an application come under their own names, with values of the same form",
    tuple(Row(column, header, f"{type}:amqp", note) for column, header, type, note in _PROPERTIES),
)
