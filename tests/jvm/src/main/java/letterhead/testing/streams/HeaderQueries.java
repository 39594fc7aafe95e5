package letterhead.testing.streams;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.time.Instant;
import java.util.Iterator;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;

/** Interactive queries of stores with headers (KIP-1356). By reflection, as Kafka 4.3 does not have their classes. */
final class HeaderQueries {
    private static final String PACKAGE = "org.apache.kafka.streams.query.";

    private HeaderQueries() {}

    /** Runs the query {@code class}, built by {@code method}, and shows its records. */
    static JsonNode perform(StateStore store, JsonNode operation) {
        try {
            Class<?> type = Class.forName(PACKAGE + operation.get("class").textValue());
            Object query = invoke(type, null, operation.get("method").textValue(), arguments(operation.get("arguments")));
            if (operation.path("descending").asBoolean()) {
                query = invoke(type, query, "withDescendingKeys");
            }
            QueryResult<?> result = store.query((Query<?>) query, PositionBound.unbounded(), new QueryConfig(false));
            if (result.isFailure()) {
                return Json.MAPPER.createObjectNode().put("failure", result.getFailureReason().toString());
            }
            ArrayNode rows = Json.MAPPER.createArrayNode();
            if (result.getResult() instanceof Iterator<?> records) {
                records.forEachRemaining(record -> rows.add(shown(record)));
                ((AutoCloseable) records).close();
            } else if (result.getResult() != null) {
                rows.add(shown(result.getResult()));
            }
            return rows;
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    private static Object[] arguments(JsonNode list) {
        Object[] arguments = new Object[list.size()];
        for (int i = 0; i < arguments.length; i++) {
            JsonNode value = list.get(i);
            arguments[i] = value.isIntegralNumber() ? Instant.ofEpochMilli(value.longValue()) : Json.bytes(value);
        }
        return arguments;
    }

    private static ObjectNode shown(Object record) {
        try {
            Class<?> type = Class.forName("org.apache.kafka.streams.processor.api.ReadOnlyRecord");
            ObjectNode row = Json.MAPPER.createObjectNode();
            Object key = invoke(type, record, "key");
            if (key instanceof Windowed<?> windowed) {
                row.put("start", Long.toString(windowed.window().start()));
                row.put("end", Long.toString(windowed.window().end()));
                key = windowed.key();
            }
            row.put("key", Json.hex((byte[]) key));
            row.put("value", Json.hex((byte[]) invoke(type, record, "value")));
            row.put("timestamp", invoke(type, record, "timestamp").toString());
            row.set("headers", Json.shown((Headers) invoke(type, record, "headers")));
            return row;
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    private static Object invoke(Class<?> type, Object on, String name, Object... arguments)
            throws ReflectiveOperationException {
        for (Method method : type.getMethods()) {
            if (method.getName().equals(name) && method.getParameterCount() == arguments.length) {
                try {
                    return method.invoke(on, arguments);
                } catch (InvocationTargetException error) {
                    throw new IllegalStateException(error.getCause());
                }
            }
        }
        throw new NoSuchMethodException(name);
    }
}
