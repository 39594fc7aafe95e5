import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads offset and the header "amount" of all records of a topic into two arrays, with Kafka's own consumer.
 *
 * <pre>ConsumeTopic ADDRESS TOPIC PARTITIONS RECORDS      prints: seconds records sum-of-offsets sum-of-amounts</pre>
 *
 * It reads the topic twice with two consumers and prints the time of the second pass, which includes connecting: the
 * JVM runs, and its code is compiled.
 */
final class ConsumeTopic {
    public static void main(String[] arguments) {
        consume(arguments);
        System.out.println(consume(arguments));
    }

    private static String consume(String[] arguments) {
        String topic = arguments[1];
        int partitions = Integer.parseInt(arguments[2]);
        int records = Integer.parseInt(arguments[3]);
        long started = System.nanoTime();
        long[] offsets = new long[records];
        long[] amounts = new long[records];
        int found = 0;
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", arguments[0],
            "enable.auto.commit", false,
            "max.poll.records", 100_000,
            "receive.buffer.bytes", 1 << 20,
            "fetch.max.bytes", 64 << 20,
            "max.partition.fetch.bytes", 16 << 20);
        var bytes = new ByteArrayDeserializer();
        try (var consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
            var assigned = IntStream.range(0, partitions).mapToObj(number -> new TopicPartition(topic, number)).toList();
            consumer.assign(assigned);
            consumer.seekToBeginning(assigned);
            while (found < records) {
                var polled = consumer.poll(Duration.ofSeconds(10));
                if (polled.isEmpty()) {
                    throw new IllegalStateException("nothing came for 10 s, after " + found + " records");
                }
                for (ConsumerRecord<byte[], byte[]> record : polled) {
                    Header amount = record.headers().lastHeader("amount");
                    offsets[found] = record.offset();
                    amounts[found] = ByteBuffer.wrap(amount.value()).getLong();
                    found += 1;
                }
            }
            double seconds = (System.nanoTime() - started) / 1e9;
            long offsetSum = Arrays.stream(offsets).sum();
            long amountSum = Arrays.stream(amounts).sum();
            return seconds + " " + found + " " + offsetSum + " " + amountSum;
        }
    }
}
