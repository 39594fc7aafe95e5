package letterhead.testing.streams;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.NullNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HexFormat;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.streams.state.AggregationWithHeaders;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.ValueTimestampHeaders;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.test.TestRecord;

/** Values, headers and records as JSON: bytes in hex, 64-bit numbers as text. */
final class Json {
    static final ObjectMapper MAPPER = new ObjectMapper();

    private Json() {}

    static byte[] bytes(JsonNode hex) {
        return hex == null || hex.isNull() ? null : HexFormat.of().parseHex(hex.textValue());
    }

    static String hex(byte[] data) {
        return data == null ? null : HexFormat.of().formatHex(data);
    }

    static Headers headers(JsonNode list) {
        Headers headers = new RecordHeaders();
        list.forEach(header -> headers.add(header.get("key").textValue(), bytes(header.get("value"))));
        return headers;
    }

    /** What an operation puts: bytes, a value with a timestamp, one with headers too, or an aggregation. */
    static Object value(JsonNode operation) {
        if (operation.hasNonNull("plain")) {
            return bytes(operation.get("plain"));
        }
        if (operation.hasNonNull("timestamped")) {
            JsonNode value = operation.get("timestamped");
            return ValueAndTimestamp.make(bytes(value.get("value")), value.get("timestamp").asLong());
        }
        JsonNode value = operation.get("value");
        if (value == null || value.isNull()) {
            return null;
        }
        Headers headers = headers(value.get("headers"));
        return value.has("aggregation")
                ? AggregationWithHeaders.makeAllowNullable(bytes(value.get("aggregation")), headers)
                : ValueTimestampHeaders.makeAllowNullable(
                        bytes(value.get("value")), value.get("timestamp").asLong(), headers);
    }

    static JsonNode shown(Object value) {
        if (value == null) {
            return NullNode.getInstance();
        }
        if (value instanceof byte[] data) {
            return MAPPER.getNodeFactory().textNode(hex(data));
        }
        ObjectNode shown = MAPPER.createObjectNode();
        if (value instanceof ValueTimestampHeaders<?> stored) {
            shown.put("value", hex((byte[]) stored.value())).put("timestamp", Long.toString(stored.timestamp()));
            shown.set("headers", shown(stored.headers()));
        } else if (value instanceof AggregationWithHeaders<?> stored) {
            shown.put("aggregation", hex((byte[]) stored.aggregation())).set("headers", shown(stored.headers()));
        } else if (value instanceof ValueAndTimestamp<?> stored) {
            shown.put("value", hex((byte[]) stored.value())).put("timestamp", Long.toString(stored.timestamp()));
        } else if (value instanceof VersionedRecord<?> version) {
            shown.put("value", hex((byte[]) version.value())).put("timestamp", Long.toString(version.timestamp()));
            shown.put("valid_to", version.validTo().map(Object::toString).orElse(null));
        } else {
            throw new IllegalArgumentException("a value that cannot be shown: " + value.getClass());
        }
        return shown;
    }

    static ObjectNode shown(TestRecord<byte[], byte[]> record) {
        ObjectNode shown = MAPPER.createObjectNode()
                .put("key", hex(record.key()))
                .put("value", hex(record.value()))
                .put("timestamp", record.timestamp() == null ? null : record.timestamp().toString());
        shown.set("headers", shown(record.headers()));
        return shown;
    }

    static ArrayNode shown(Headers headers) {
        ArrayNode shown = MAPPER.createArrayNode();
        headers.forEach(header -> shown.addObject().put("key", header.key()).put("value", hex(header.value())));
        return shown;
    }
}
