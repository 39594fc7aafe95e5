// In Kafka's package because ValueTimestampHeadersDeserializer is package-private there.
package org.apache.kafka.streams.state.internals;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.ValueTimestampHeaders;
import org.apache.kafka.streams.test.TestRecord;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.infra.Blackhole;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.results.format.ResultFormatType;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.options.ChainedOptionsBuilder;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;

/**
 * Kafka Streams' persistent key-value store with headers: put and get through its metered and its change-logging layer.
 *
 * <p>One operation is all rows. The store is one of a {@link TopologyTestDriver}, whose producer keeps what is logged
 * until it is taken; that is done between operations, and not in the time.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class StoreBenchmark {
    private static final String STORE = "latest";
    private static final String APPLICATION = "benchmark";

    /** A file of rows: int32 count, then int32 length and the bytes of each key and of what the store holds. */
    @Param("") public String file;

    @Param("-1") public int rows;

    /** Latencies are taken at DEBUG; INFO is what Kafka Streams runs with by default. */
    @Param({"INFO", "DEBUG"}) public String metrics;

    private byte[][] keys;
    private List<ValueTimestampHeaders<byte[]>> values;
    private Path directory;
    private TopologyTestDriver driver;
    private TestInputTopic<byte[], byte[]> input;
    private TestOutputTopic<byte[], byte[]> changelog;
    private KeyValueStore<byte[], ValueTimestampHeaders<byte[]>> store;

    @Setup
    public void openAndCheck() throws IOException {
        byte[][] rowBytes = readRows();
        ValueTimestampHeadersDeserializer<byte[]> reader =
            new ValueTimestampHeadersDeserializer<>(new ByteArrayDeserializer());
        values = Arrays.stream(rowBytes).map(bytes -> reader.deserialize("", bytes)).toList();
        driver = new TopologyTestDriver(topology(), properties());
        input = driver.createInputTopic("in", new ByteArraySerializer(), new ByteArraySerializer());
        changelog = driver.createOutputTopic(
            APPLICATION + "-" + STORE + "-changelog", new ByteArrayDeserializer(), new ByteArrayDeserializer());
        store = driver.getTimestampedKeyValueStoreWithHeaders(STORE);
        put();
        List<TestRecord<byte[], byte[]>> logged = logged();
        expect("rows in the changelog", rows, logged.size());
        ValueTimestampHeadersSerializer<byte[]> writer =
            new ValueTimestampHeadersSerializer<>(new ByteArraySerializer());
        for (int row = 0; row < rows; row++) {
            ValueTimestampHeaders<byte[]> held = store.get(keys[row]);
            TestRecord<byte[], byte[]> record = logged.get(row);
            boolean right = Arrays.equals(writer.serialize("", held), rowBytes[row])
                && Arrays.equals(record.key(), keys[row])
                && Arrays.equals(record.value(), held.value())
                && record.timestamp() == held.timestamp()
                && record.headers().equals(held.headers());
            if (!right) {
                throw new IllegalStateException("row " + row + " is not held and logged as it was put");
            }
        }
    }

    /** Takes what was logged: with the next record, the driver asks its producer for it. */
    @TearDown(Level.Invocation)
    public void takeChangelog() {
        logged();
    }

    @TearDown
    public void close() throws IOException {
        driver.close();
        Utils.delete(directory.toFile());
    }

    @Benchmark
    public void put() {
        for (int row = 0; row < rows; row++) {
            store.put(keys[row], values.get(row));
        }
    }

    @Benchmark
    public void get(Blackhole hole) {
        for (byte[] key : keys) {
            hole.consume(store.get(key));
        }
    }

    private List<TestRecord<byte[], byte[]>> logged() {
        input.pipeInput(new byte[0], new byte[0]);
        return changelog.readRecordsToList();
    }

    private Topology topology() {
        Topology topology = new Topology();
        topology.addSource("source", new ByteArrayDeserializer(), new ByteArrayDeserializer(), "in");
        topology.addProcessor("processor", Ignoring::new, "source");
        topology.addStateStore(
            Stores.timestampedKeyValueStoreWithHeadersBuilder(
                    Stores.persistentTimestampedKeyValueStoreWithHeaders(STORE), Serdes.ByteArray(), Serdes.ByteArray())
                .withCachingDisabled()
                .withLoggingEnabled(Map.of()),
            "processor");
        return topology;
    }

    private Properties properties() throws IOException {
        directory = Files.createTempDirectory("letterhead-bench");
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, APPLICATION);
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "nowhere:9092");
        properties.put(StreamsConfig.STATE_DIR_CONFIG, directory.toString());
        properties.put(StreamsConfig.METRICS_RECORDING_LEVEL_CONFIG, metrics);
        return properties;
    }

    private byte[][] readRows() throws IOException {
        try (DataInputStream in = new DataInputStream(new BufferedInputStream(Files.newInputStream(Path.of(file))))) {
            expect("rows", rows, in.readInt());
            keys = new byte[rows][];
            byte[][] rowBytes = new byte[rows][];
            for (int row = 0; row < rows; row++) {
                keys[row] = in.readNBytes(in.readInt());
                rowBytes[row] = in.readNBytes(in.readInt());
            }
            return rowBytes;
        }
    }

    private static void expect(String what, int expected, int seen) {
        if (expected != seen) {
            throw new IllegalStateException(what + ": expected " + expected + ", found " + seen);
        }
    }

    /** The store is used from outside. */
    private static class Ignoring implements Processor<byte[], byte[], Void, Void> {
        @Override
        public void process(Record<byte[], byte[]> record) {}
    }

    /** Run both. Arguments: quick|full, file of rows, how many, file for the JSON result. */
    public static void main(String[] arguments) throws Exception {
        boolean quick = arguments[0].equals("quick");
        ChainedOptionsBuilder options = new OptionsBuilder()
            .include(StoreBenchmark.class.getName())
            .param("file", arguments[1])
            .param("rows", arguments[2])
            .shouldFailOnError(true)
            .resultFormat(ResultFormatType.JSON)
            .result(arguments[3])
            .forks(quick ? 1 : 2)
            .warmupIterations(quick ? 0 : 4)
            .warmupTime(TimeValue.seconds(1))
            .measurementIterations(quick ? 1 : 5)
            .measurementTime(quick ? TimeValue.milliseconds(100) : TimeValue.seconds(1))
            // As for the headers alone: one core for everything, and the collector that is cheapest there.
            .jvmArgsAppend("-Xms1g", "-Xmx1g", "-XX:+UseSerialGC");
        if (quick) {
            options.param("metrics", "INFO");
        }
        for (RunResult result : new Runner(options.build()).run()) {
            System.out.printf(
                "%s: %.2f ns/row%s%n",
                result.getPrimaryResult().getLabel(),
                result.getPrimaryResult().getScore() / Double.parseDouble(arguments[2]),
                quick ? " (one short iteration: the answers were checked, the time means nothing)" : "");
        }
    }
}
