package letterhead.testing.broker;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Prints every record that a topic holds now, one line of JSON each: bytes in hex, headers in their order.
 *
 * <p>Arguments: the broker's address and the topic.
 */
public final class Consume {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private Consume() {}

    public static void main(String[] arguments) throws IOException {
        Map<String, Object> config = Map.of("bootstrap.servers", arguments[0], "auto.offset.reset", "none");
        var out = new PrintStream(new BufferedOutputStream(System.out), false, StandardCharsets.UTF_8);
        try (var consumer =
                new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> partitions = consumer.partitionsFor(arguments[1]).stream()
                    .map(partition -> new TopicPartition(partition.topic(), partition.partition()))
                    .toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            while (partitions.stream().anyMatch(partition -> consumer.position(partition) < ends.get(partition))) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    out.println(MAPPER.writeValueAsString(shown(record)));
                }
            }
        }
        out.flush();
    }

    private static ObjectNode shown(ConsumerRecord<byte[], byte[]> record) {
        ObjectNode shown = MAPPER.createObjectNode();
        shown.put("partition", record.partition());
        shown.put("offset", record.offset());
        shown.put("key", hex(record.key()));
        shown.put("value", hex(record.value()));
        ArrayNode headers = shown.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(hex(header.value()));
        }
        return shown;
    }

    private static String hex(byte[] data) {
        return data == null ? null : HexFormat.of().formatHex(data);
    }
}
