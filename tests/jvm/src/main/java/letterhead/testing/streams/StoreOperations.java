package letterhead.testing.streams;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.WindowStore;

/** The operations of stores by their names in a command; what {@code from}, {@code key_from} and the like mean is there. */
final class StoreOperations {
    private StoreOperations() {}

    /** Does one operation and shows what it gives; null for what gives nothing. */
    @SuppressWarnings("unchecked") // every store here has keys of bytes, and values of the format that it was built for
    static JsonNode perform(StateStore store, JsonNode operation) {
        if (name(operation).equals("query")) {
            return HeaderQueries.perform(store, operation);
        }
        if (store instanceof VersionedKeyValueStore<?, ?> versioned) {
            return perform((VersionedKeyValueStore<byte[], byte[]>) versioned, operation);
        }
        if (store instanceof KeyValueStore<?, ?> keyValue) {
            return perform((KeyValueStore<byte[], Object>) keyValue, operation);
        }
        if (store instanceof WindowStore<?, ?> window) {
            return perform((WindowStore<byte[], Object>) window, operation);
        }
        return perform((SessionStore<byte[], Object>) store, operation);
    }

    private static JsonNode perform(KeyValueStore<byte[], Object> store, JsonNode operation) {
        byte[] key = Json.bytes(operation.get("key"));
        byte[] from = Json.bytes(operation.get("from"));
        byte[] to = Json.bytes(operation.get("to"));
        return switch (name(operation)) {
            case "put" -> {
                store.put(key, Json.value(operation));
                yield Json.shown((Object) null);
            }
            case "putIfAbsent" -> Json.shown(store.putIfAbsent(key, Json.value(operation)));
            case "putAll" -> {
                List<KeyValue<byte[], Object>> entries = new ArrayList<>();
                operation.get("entries").forEach(
                        entry -> entries.add(KeyValue.pair(Json.bytes(entry.get("key")), Json.value(entry))));
                store.putAll(entries);
                yield Json.shown((Object) null);
            }
            case "delete" -> Json.shown(store.delete(key));
            case "get" -> Json.shown(store.get(key));
            case "range" -> rows(store.range(from, to));
            case "reverseRange" -> rows(store.reverseRange(from, to));
            case "all" -> rows(store.all());
            case "reverseAll" -> rows(store.reverseAll());
            case "prefixScan" ->
                    rows(store.prefixScan(Json.bytes(operation.get("prefix")), new ByteArraySerializer()));
            default -> throw unknown(operation);
        };
    }

    private static JsonNode perform(WindowStore<byte[], Object> store, JsonNode operation) {
        byte[] key = Json.bytes(operation.get("key"));
        byte[] keyFrom = Json.bytes(operation.get("key_from"));
        byte[] keyTo = Json.bytes(operation.get("key_to"));
        long start = number(operation, "start");
        long from = number(operation, "from");
        long to = number(operation, "to");
        return switch (name(operation)) {
            case "put" -> {
                store.put(key, Json.value(operation), start);
                yield Json.shown((Object) null);
            }
            case "fetch" -> Json.shown(store.fetch(key, start));
            case "fetchKey" -> rows(store.fetch(key, from, to));
            case "backwardFetchKey" -> rows(store.backwardFetch(key, from, to));
            case "fetchRange" -> rows(store.fetch(keyFrom, keyTo, from, to));
            case "backwardFetchRange" -> rows(store.backwardFetch(keyFrom, keyTo, from, to));
            case "fetchAll" -> rows(store.fetchAll(from, to));
            case "backwardFetchAll" -> rows(store.backwardFetchAll(from, to));
            case "all" -> rows(store.all());
            case "backwardAll" -> rows(store.backwardAll());
            default -> throw unknown(operation);
        };
    }

    private static JsonNode perform(SessionStore<byte[], Object> store, JsonNode operation) {
        byte[] key = Json.bytes(operation.get("key"));
        byte[] keyFrom = Json.bytes(operation.get("key_from"));
        byte[] keyTo = Json.bytes(operation.get("key_to"));
        long start = number(operation, "start");
        long end = number(operation, "end");
        long earliestEnd = number(operation, "earliest_end");
        long latestStart = number(operation, "latest_start");
        return switch (name(operation)) {
            case "put" -> {
                store.put(new Windowed<>(key, new SessionWindow(start, end)), Json.value(operation));
                yield Json.shown((Object) null);
            }
            case "remove" -> {
                store.remove(new Windowed<>(key, new SessionWindow(start, end)));
                yield Json.shown((Object) null);
            }
            case "fetchSession" -> Json.shown(store.fetchSession(key, start, end));
            case "findSessionsKey" -> rows(store.findSessions(key, earliestEnd, latestStart));
            case "backwardFindSessionsKey" -> rows(store.backwardFindSessions(key, earliestEnd, latestStart));
            case "findSessionsRange" -> rows(store.findSessions(keyFrom, keyTo, earliestEnd, latestStart));
            case "backwardFindSessionsRange" ->
                    rows(store.backwardFindSessions(keyFrom, keyTo, earliestEnd, latestStart));
            case "fetchKey" -> rows(store.fetch(key));
            case "backwardFetchKey" -> rows(store.backwardFetch(key));
            case "fetchRange" -> rows(store.fetch(keyFrom, keyTo));
            case "backwardFetchRange" -> rows(store.backwardFetch(keyFrom, keyTo));
            default -> throw unknown(operation);
        };
    }

    private static JsonNode perform(VersionedKeyValueStore<byte[], byte[]> store, JsonNode operation) {
        byte[] key = Json.bytes(operation.get("key"));
        long timestamp = number(operation, "timestamp");
        return switch (name(operation)) {
            case "put" -> {
                long validTo = store.put(key, Json.bytes(operation.get("value")), timestamp);
                yield Json.MAPPER.getNodeFactory().textNode(Long.toString(validTo));
            }
            case "delete" -> Json.shown(store.delete(key, timestamp));
            case "get" -> Json.shown(store.get(key));
            case "getAsOf" -> Json.shown(store.get(key, number(operation, "as_of")));
            default -> throw unknown(operation);
        };
    }

    private static ArrayNode rows(KeyValueIterator<?, Object> found) {
        ArrayNode rows = Json.MAPPER.createArrayNode();
        try (found) {
            while (found.hasNext()) {
                KeyValue<?, Object> next = found.next();
                ObjectNode row = rows.addObject();
                if (next.key instanceof Windowed<?> windowed) {
                    row.put("key", Json.hex((byte[]) windowed.key()));
                    row.put("start", Long.toString(windowed.window().start()));
                    row.put("end", Long.toString(windowed.window().end()));
                } else if (next.key instanceof Long start) {
                    row.put("start", Long.toString(start)); // the windows of one key
                } else {
                    row.put("key", Json.hex((byte[]) next.key));
                }
                row.set("value", Json.shown(next.value));
            }
        }
        return rows;
    }

    private static String name(JsonNode operation) {
        return operation.get("op").textValue();
    }

    private static long number(JsonNode operation, String name) {
        return operation.has(name) ? operation.get(name).asLong() : 0;
    }

    private static IllegalArgumentException unknown(JsonNode operation) {
        return new IllegalArgumentException("an operation that is not known: " + operation);
    }
}
