import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.ValueTimestampHeaders;

/**
 * Reads timestamp and one header of all rows of a store into two arrays, with the iterator of Kafka Streams.
 *
 * <pre>IterateStore TASK STORE HEADER ROWS      prints: seconds rows sum-of-timestamps sum-of-header</pre>
 *
 * It iterates twice and prints the time of the second pass, from {@code all()} to the last row: the store is open, and
 * its code is compiled.
 */
final class IterateStore {
    public static void main(String[] arguments) throws IOException {
        String name = arguments[1];
        int rows = Integer.parseInt(arguments[3]);
        // The driver removes its state when it closes. What it finds here, and removes, is a link.
        Path state = Files.createTempDirectory("streams-");
        Files.createSymbolicLink(
            Files.createDirectories(state.resolve("app")).resolve("0_0"), Path.of(arguments[0]).toAbsolutePath());
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "app");
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "none:0");
        properties.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
        var bytes = Serdes.ByteArray();
        Topology topology = new Topology()
            .addSource("source", "in")
            .addProcessor("ignore", Ignore::new, "source")
            .addStateStore(
                Stores.timestampedKeyValueStoreWithHeadersBuilder(
                        Stores.persistentTimestampedKeyValueStoreWithHeaders(name), bytes, bytes)
                    .withCachingDisabled()
                    .withLoggingDisabled(),
                "ignore");
        try (var driver = new TopologyTestDriver(topology, properties)) {
            KeyValueStore<byte[], ValueTimestampHeaders<byte[]>> store =
                driver.getTimestampedKeyValueStoreWithHeaders(name);
            iterate(store, arguments[2], rows);
            System.out.println(iterate(store, arguments[2], rows));
        }
    }

    private static String iterate(
            KeyValueStore<byte[], ValueTimestampHeaders<byte[]>> store, String header, int rows) {
        long started = System.nanoTime();
        long[] timestamps = new long[rows];
        long[] numbers = new long[rows];
        int found = 0;
        try (KeyValueIterator<byte[], ValueTimestampHeaders<byte[]>> all = store.all()) {
            while (all.hasNext()) {
                KeyValue<byte[], ValueTimestampHeaders<byte[]>> row = all.next();
                timestamps[found] = row.value.timestamp();
                numbers[found] = ByteBuffer.wrap(row.value.headers().lastHeader(header).value()).getLong();
                found += 1;
            }
        }
        double seconds = (System.nanoTime() - started) / 1e9;
        long timestampSum = Arrays.stream(timestamps).sum();
        long numberSum = Arrays.stream(numbers).sum();
        return seconds + " " + found + " " + timestampSum + " " + numberSum;
    }

    private static final class Ignore implements Processor<byte[], byte[], Void, Void> {
        @Override
        public void process(Record<byte[], byte[]> record) {}
    }
}
