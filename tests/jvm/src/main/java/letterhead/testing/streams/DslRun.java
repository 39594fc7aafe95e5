package letterhead.testing.streams;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.test.TestRecord;

/** One run of a topology of the DSL, whose stores are the ones that Kafka Streams chooses, over some records. */
final class DslRun {
    private static final Duration WINDOW = Duration.ofMillis(1000);

    private DslRun() {}

    /**
     * Runs a topology.
     *
     * @param task where its files are, or will be: the directory of a task
     * @param config {@code topology}, {@code suppress} or {@code outer-join}; {@code format}, a {@code dsl.store.format}; and
     *     {@code records}, each with its {@code topic}
     * @return the records of each topic that it wrote, changelogs among them
     */
    static ObjectNode run(Path task, JsonNode config) throws IOException {
        Path state = Files.createTempDirectory("streams-");
        Files.createDirectories(task);
        Files.createSymbolicLink(Files.createDirectories(state.resolve("app")).resolve("0_0"), task.toAbsolutePath());
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "app");
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "none:0");
        properties.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
        properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        properties.put("dsl.store.format", config.get("format").textValue());
        Topology topology = config.get("topology").textValue().equals("suppress") ? suppress() : outerJoin();
        ObjectNode answer = Json.MAPPER.createObjectNode();
        try (TopologyTestDriver driver = new TopologyTestDriver(topology, properties, Instant.EPOCH)) {
            Map<String, TestInputTopic<byte[], byte[]>> inputs = new HashMap<>();
            for (JsonNode record : config.get("records")) {
                inputs.computeIfAbsent(
                                record.get("topic").textValue(),
                                name -> driver.createInputTopic(
                                        name, new ByteArraySerializer(), new ByteArraySerializer()))
                        .pipeInput(new TestRecord<>(
                                Json.bytes(record.get("key")),
                                Json.bytes(record.get("value")),
                                Json.headers(record.get("headers")),
                                Instant.ofEpochMilli(record.get("timestamp").longValue())));
            }
            for (String name : new TreeSet<>(driver.producedTopicNames())) {
                ArrayNode records = answer.putArray(name);
                driver.createOutputTopic(name, new ByteArrayDeserializer(), new ByteArrayDeserializer())
                        .readRecordsToList()
                        .forEach(record -> records.add(Json.shown(record)));
            }
        }
        return answer;
    }

    private static Topology suppress() {
        StreamsBuilder builder = new StreamsBuilder();
        builder.table("in", Materialized.<byte[], byte[], KeyValueStore<Bytes, byte[]>>as("table"))
                .suppress(Suppressed.<byte[]>untilTimeLimit(
                                WINDOW, Suppressed.BufferConfig.unbounded())
                        .withName("buffer"))
                .toStream()
                .to("out");
        return builder.build();
    }

    private static Topology outerJoin() {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<byte[], byte[]> right = builder.stream("right");
        builder.<byte[], byte[]>stream("left")
                .outerJoin(
                        right,
                        (one, other) -> one == null ? other : one,
                        JoinWindows.ofTimeDifferenceWithNoGrace(WINDOW),
                        StreamJoined.<byte[], byte[], byte[]>with(
                                        Serdes.ByteArray(), Serdes.ByteArray(), Serdes.ByteArray())
                                .withName("join")
                                .withStoreName("join"))
                .to("out");
        return builder.build();
    }
}
