package letterhead.testing.streams;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.apache.kafka.streams.test.TestRecord;
import org.rocksdb.Options;

/** One opening of a store, in a topology whose processor does what it is told while it handles a record. */
final class StoreRun {
    private static final String WRITE_BUFFER = "letterhead.write.buffer.bytes";

    private final TopologyTestDriver driver;
    private final TestInputTopic<byte[], byte[]> input;
    private final TestOutputTopic<byte[], byte[]> changelog;
    private JsonNode operations;
    private ArrayNode results;

    /**
     * Opens a store.
     *
     * @param task where its files are, or will be: the directory of a task
     * @param config what store it is, in the words of {@link StoreBuilders}, {@code write_buffer_bytes}, and
     *     {@code transactional}
     */
    StoreRun(Path task, JsonNode config) throws IOException {
        // The driver removes its state when it closes. What it finds here, and removes, is a link.
        Path state = Files.createTempDirectory("streams-");
        Files.createDirectories(task);
        Files.createSymbolicLink(Files.createDirectories(state.resolve("app")).resolve("0_0"), task.toAbsolutePath());
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "app");
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "none:0");
        properties.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
        // A string, as the version that the tests run with may not have it.
        properties.put("enable.transactional.statestores", config.path("transactional").asBoolean());
        if (config.has("write_buffer_bytes")) {
            properties.put(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG, WriteBuffer.class);
            properties.put(WRITE_BUFFER, config.get("write_buffer_bytes").longValue());
        }
        Topology topology = new Topology()
                .addSource("source", "in")
                .addProcessor("steps", Steps::new, "source")
                .addStateStore(StoreBuilders.of(config), "steps");
        driver = new TopologyTestDriver(topology, properties, Instant.EPOCH);
        input = driver.createInputTopic("in", new ByteArraySerializer(), new ByteArraySerializer());
        changelog = driver.createOutputTopic(
                "app-store-changelog", new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    /** Does operations while one record is handled, which is followed by a commit. */
    ObjectNode step(JsonNode record, JsonNode operations) {
        this.operations = operations;
        this.results = Json.MAPPER.createArrayNode();
        Instant timestamp = Instant.ofEpochMilli(record.get("timestamp").asLong());
        byte[] key = {'k'};
        input.pipeInput(new TestRecord<>(key, key, Json.headers(record.get("headers")), timestamp));
        ObjectNode answer = Json.MAPPER.createObjectNode();
        answer.set("results", results);
        answer.set("changelog", taken());
        return answer;
    }

    ObjectNode close() {
        driver.close();
        ObjectNode answer = Json.MAPPER.createObjectNode();
        answer.set("changelog", taken());
        return answer;
    }

    private ArrayNode taken() {
        ArrayNode records = Json.MAPPER.createArrayNode();
        changelog.readRecordsToList().forEach(record -> records.add(Json.shown(record)));
        return records;
    }

    private final class Steps implements Processor<byte[], byte[], Void, Void> {
        private StateStore store;

        @Override
        public void init(ProcessorContext<Void, Void> context) {
            store = context.getStateStore("store");
        }

        @Override
        public void process(Record<byte[], byte[]> record) {
            for (JsonNode operation : operations) {
                results.add(StoreOperations.perform(store, operation));
            }
        }
    }

    /** Lets rows go to files early. */
    public static final class WriteBuffer implements RocksDBConfigSetter {
        @Override
        public void setConfig(String store, Options options, Map<String, Object> configs) {
            options.setWriteBufferSize((Long) configs.get(WRITE_BUFFER));
        }

        @Override
        public void close(String store, Options options) {}
    }
}
