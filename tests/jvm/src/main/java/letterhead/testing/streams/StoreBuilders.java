package letterhead.testing.streams;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;
import org.apache.kafka.streams.state.internals.RocksDbIndexedTimeOrderedWindowBytesStoreSupplier;
import org.apache.kafka.streams.state.internals.RocksDbIndexedTimeOrderedWindowBytesStoreWithHeadersSupplier;
import org.apache.kafka.streams.state.internals.RocksDbTimeOrderedSessionBytesStoreSupplier;
import org.apache.kafka.streams.state.internals.RocksDbTimeOrderedSessionHeadersBytesStoreSupplier;

/**
 * Builders of the store {@code store}, of bytes, as a configuration describes it.
 *
 * <p>{@code family} is {@code kv}, {@code window}, {@code session}, one of the last two after {@code time-ordered-}, or
 * {@code versioned}; {@code format} is {@code plain}, {@code timestamped} or {@code headers}; {@code supplier} is
 * {@code rocksdb-timestamped-adapter} or {@code rocksdb-plain-adapter} if the store below is of an older format, and
 * {@code in-memory} if it is in memory; without it the store is persistent.
 */
final class StoreBuilders {
    private static final String NAME = "store";
    private static final Serde<byte[]> BYTES = Serdes.ByteArray();

    private StoreBuilders() {}

    static StoreBuilder<?> of(JsonNode config) {
        String format = config.get("format").textValue();
        String stored = config.has("supplier") ? config.get("supplier").textValue().split("-")[1] : format;
        StoreBuilder<?> builder = switch (config.get("family").textValue()) {
            case "kv" -> keyValue(keyValueSupplier(stored), format);
            case "window", "time-ordered-window" -> window(windowSupplier(config, stored), format);
            case "session", "time-ordered-session" -> session(sessionSupplier(config, stored), format);
            case "versioned" -> versioned(config);
            default -> throw new IllegalArgumentException("a store that is not known: " + config);
        };
        if (config.get("caching").booleanValue()) {
            builder.withCachingEnabled();
        }
        return config.get("logging").booleanValue() ? builder : builder.withLoggingDisabled();
    }

    private static KeyValueBytesStoreSupplier keyValueSupplier(String format) {
        return switch (format) {
            case "plain" -> Stores.persistentKeyValueStore(NAME);
            case "timestamped" -> Stores.persistentTimestampedKeyValueStore(NAME);
            case "memory" -> Stores.inMemoryKeyValueStore(NAME);
            default -> Stores.persistentTimestampedKeyValueStoreWithHeaders(NAME);
        };
    }

    private static StoreBuilder<?> keyValue(KeyValueBytesStoreSupplier supplier, String format) {
        return switch (format) {
            case "plain" -> Stores.keyValueStoreBuilder(supplier, BYTES, BYTES);
            case "timestamped" -> Stores.timestampedKeyValueStoreBuilder(supplier, BYTES, BYTES);
            default -> Stores.timestampedKeyValueStoreWithHeadersBuilder(supplier, BYTES, BYTES);
        };
    }

    private static WindowBytesStoreSupplier windowSupplier(JsonNode config, String format) {
        Duration retention = milliseconds(config, "retention_ms");
        Duration size = milliseconds(config, "window_size_ms");
        boolean duplicates = config.get("retain_duplicates").booleanValue();
        if (config.get("family").textValue().startsWith("time-ordered-")) {
            return format.equals("headers")
                    ? RocksDbIndexedTimeOrderedWindowBytesStoreWithHeadersSupplier.create(
                            NAME, retention, size, duplicates, true)
                    : RocksDbIndexedTimeOrderedWindowBytesStoreSupplier.create(NAME, retention, size, duplicates, true);
        }
        return switch (format) {
            case "plain" -> Stores.persistentWindowStore(NAME, retention, size, duplicates);
            case "timestamped" -> Stores.persistentTimestampedWindowStore(NAME, retention, size, duplicates);
            case "memory" -> Stores.inMemoryWindowStore(NAME, retention, size, duplicates);
            default -> Stores.persistentTimestampedWindowStoreWithHeaders(NAME, retention, size, duplicates);
        };
    }

    private static StoreBuilder<?> window(WindowBytesStoreSupplier supplier, String format) {
        return switch (format) {
            case "plain" -> Stores.windowStoreBuilder(supplier, BYTES, BYTES);
            case "timestamped" -> Stores.timestampedWindowStoreBuilder(supplier, BYTES, BYTES);
            default -> Stores.timestampedWindowStoreWithHeadersBuilder(supplier, BYTES, BYTES);
        };
    }

    private static SessionBytesStoreSupplier sessionSupplier(JsonNode config, String format) {
        Duration retention = milliseconds(config, "retention_ms");
        if (config.get("family").textValue().startsWith("time-ordered-")) {
            return format.equals("headers")
                    ? new RocksDbTimeOrderedSessionHeadersBytesStoreSupplier(NAME, retention.toMillis(), true)
                    : new RocksDbTimeOrderedSessionBytesStoreSupplier(NAME, retention.toMillis(), true);
        }
        return switch (format) {
            case "plain" -> Stores.persistentSessionStore(NAME, retention);
            case "memory" -> Stores.inMemorySessionStore(NAME, retention);
            default -> Stores.persistentSessionStoreWithHeaders(NAME, retention);
        };
    }

    private static StoreBuilder<?> session(SessionBytesStoreSupplier supplier, String format) {
        return format.equals("plain")
                ? Stores.sessionStoreBuilder(supplier, BYTES, BYTES)
                : Stores.sessionStoreWithHeadersBuilder(supplier, BYTES, BYTES);
    }

    private static StoreBuilder<?> versioned(JsonNode config) {
        Duration history = milliseconds(config, "history_retention_ms");
        Duration interval = milliseconds(config, "segment_interval_ms");
        return Stores.versionedKeyValueStoreBuilder(
                Stores.persistentVersionedKeyValueStore(NAME, history, interval), BYTES, BYTES);
    }

    private static Duration milliseconds(JsonNode config, String name) {
        return Duration.ofMillis(config.get(name).longValue());
    }
}
