package letterhead.testing.streams;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.Record;

/**
 * A real Kafka Streams application with one store, {@code store}, which it restores; it reads one topic, and does nothing with it.
 *
 * <p>Arguments: brokers, application id, state directory, topic, and a configuration for {@link StoreBuilders} if the store is not a
 * key-value store with headers. It prints a line of JSON when its store is restored, with the
 * first offset that it restored, how many records, the nanoseconds until the last batch, and those of CPU time of the process; it prints
 * {@code running} when it has no task that restores. It ends with its input, and closes the store then.
 */
public final class StreamsApp {
    private static final String KEY_VALUE =
            "{\"family\": \"kv\", \"format\": \"headers\", \"caching\": false, \"logging\": true}";

    private StreamsApp() {}

    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, arguments[1]);
        properties.put(StreamsConfig.STATE_DIR_CONFIG, arguments[2]);
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
        properties.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        properties.put("auto.offset.reset", "earliest");
        String config = arguments.length > 4 ? arguments[4] : KEY_VALUE;
        Topology topology = new Topology()
                .addSource("source", arguments[3])
                .addProcessor("ignore", Ignore::new, "source")
                .addStateStore(StoreBuilders.of(new ObjectMapper().readTree(config)), "ignore");
        CountDownLatch running = new CountDownLatch(1);
        try (KafkaStreams streams = new KafkaStreams(topology, properties)) {
            streams.setGlobalStateRestoreListener(new Printed());
            streams.setStateListener((to, from) -> {
                if (to == KafkaStreams.State.RUNNING) {
                    running.countDown();
                }
            });
            streams.start();
            if (!running.await(300, TimeUnit.SECONDS)) {
                throw new IllegalStateException("the application is still " + streams.state());
            }
            System.out.println("running");
            System.in.readAllBytes();
            streams.close(Duration.ofSeconds(30));
        }
    }

    private static final class Ignore implements Processor<byte[], byte[], Void, Void> {
        @Override
        public void process(Record<byte[], byte[]> record) {}
    }

    private static final class Printed implements StateRestoreListener {
        private final AtomicLong first = new AtomicLong();
        private final AtomicLong started = new AtomicLong();
        private final AtomicLong cpu = new AtomicLong();
        private final OperatingSystemMXBean process =
                (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

        @Override
        public void onRestoreStart(TopicPartition partition, String store, long from, long to) {
            first.set(from);
            started.set(System.nanoTime());
            cpu.set(process.getProcessCpuTime());
        }

        @Override
        public void onBatchRestored(TopicPartition partition, String store, long end, long count) {}

        @Override
        public void onRestoreEnd(TopicPartition partition, String store, long total) {
            long elapsed = System.nanoTime() - started.get();
            long spent = process.getProcessCpuTime() - cpu.get();
            System.out.printf(
                    "{\"first\": %d, \"records\": %d, \"ns\": %d, \"cpu_ns\": %d}%n",
                    first.get(), total, elapsed, spent);
        }
    }
}
