import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/**
 * Reads offset and the header "amount" of all records of a topic into two arrays, by a job of Flink with one slot.
 *
 * <pre>ReadTopic ADDRESS TOPIC PARTITIONS RECORDS      prints: seconds records sum-of-offsets sum-of-amounts</pre>
 *
 * It runs the job twice, each in a new cluster inside this JVM, and prints the time of the second: its code is
 * compiled. Source and sink are chained, so that no record is serialized or copied between them.
 */
final class ReadTopic {
    private static long[] offsets;
    private static long[] amounts;
    private static int found;

    public static void main(String[] arguments) throws Exception {
        read(arguments);
        System.out.println(read(arguments));
    }

    private static String read(String[] arguments) throws Exception {
        int records = Integer.parseInt(arguments[3]);
        long started = System.nanoTime();
        offsets = new long[records];
        amounts = new long[records];
        found = 0;
        StreamExecutionEnvironment flink = StreamExecutionEnvironment.createLocalEnvironment(1);
        flink.getConfig().enableObjectReuse();
        KafkaSource<Tuple2<Long, Long>> source = KafkaSource.<Tuple2<Long, Long>>builder()
            .setBootstrapServers(arguments[0])
            .setTopics(arguments[1])
            .setStartingOffsets(OffsetsInitializer.earliest())
            .setBounded(OffsetsInitializer.latest())
            .setProperty("max.poll.records", "100000")
            .setProperty("receive.buffer.bytes", String.valueOf(1 << 20))
            .setProperty("fetch.max.bytes", String.valueOf(64 << 20))
            .setProperty("max.partition.fetch.bytes", String.valueOf(16 << 20))
            .setDeserializer(new OffsetAndAmount())
            .build();
        flink.fromSource(source, WatermarkStrategy.noWatermarks(), "topic").sinkTo(new ToArrays());
        flink.execute();
        double seconds = (System.nanoTime() - started) / 1e9;
        long offsetSum = Arrays.stream(offsets).sum();
        long amountSum = Arrays.stream(amounts).sum();
        return seconds + " " + found + " " + offsetSum + " " + amountSum;
    }

    private static final class OffsetAndAmount implements KafkaRecordDeserializationSchema<Tuple2<Long, Long>> {
        @Override
        public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<Tuple2<Long, Long>> rows) {
            long amount = ByteBuffer.wrap(record.headers().lastHeader("amount").value()).getLong();
            rows.collect(Tuple2.of(record.offset(), amount));
        }

        @Override
        public TypeInformation<Tuple2<Long, Long>> getProducedType() {
            return Types.TUPLE(Types.LONG, Types.LONG);
        }
    }

    private static final class ToArrays implements Sink<Tuple2<Long, Long>> {
        @Override
        public SinkWriter<Tuple2<Long, Long>> createWriter(WriterInitContext context) {
            return new SinkWriter<>() {
                @Override
                public void write(Tuple2<Long, Long> row, Context context) {
                    offsets[found] = row.f0;
                    amounts[found] = row.f1;
                    found += 1;
                }

                @Override
                public void flush(boolean isLast) {}

                @Override
                public void close() {}
            };
        }
    }
}
