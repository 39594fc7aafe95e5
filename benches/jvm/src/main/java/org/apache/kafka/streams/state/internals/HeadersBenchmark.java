// In Kafka's package because HeadersDeserializer and HeadersSerializer are package-private there.
package org.apache.kafka.streams.state.internals;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collection;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.infra.Blackhole;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.results.format.ResultFormatType;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.options.ChainedOptionsBuilder;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;

/**
 * Kafka's header block reader and writer over one batch of header blocks.
 *
 * <p>One operation is the whole batch; {@link #main} divides by the number of headers. The objects made are handed to a
 * Blackhole one by one, so none can be optimised away, and are garbage at once: what the young generation costs is in
 * the figure, what a program that keeps its headers would pay is not.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class HeadersBenchmark {
    /** A file of blocks: int32 count, then int32 length and the bytes of each. */
    @Param("") public String blocks;

    // The answer, worked out by another program: what these blocks hold.
    @Param("-1") public long rows;
    @Param("-1") public long headers;
    @Param("-1") public long keyBytes;
    @Param("-1") public long valueBytes;
    @Param("-1") public long nulls;
    @Param("-1") public long retrySum;
    @Param("-1") public long amountSum;

    private byte[][] encoded;
    private Headers[] decoded;

    @Setup
    public void readAndCheck() throws IOException {
        encoded = readBlocks(Path.of(blocks));
        decoded = new Headers[encoded.length];
        long seenHeaders = 0;
        long seenKeyBytes = 0;
        long seenValueBytes = 0;
        long seenNulls = 0;
        long seenRetry = 0;
        long seenAmount = 0;
        for (int row = 0; row < encoded.length; row++) {
            Headers here = HeadersDeserializer.deserialize(encoded[row]);
            decoded[row] = here;
            for (Header header : here) {
                seenHeaders++;
                seenKeyBytes += header.key().getBytes(StandardCharsets.UTF_8).length;
                if (header.value() == null) {
                    seenNulls++;
                } else {
                    seenValueBytes += header.value().length;
                }
            }
            Header retry = here.lastHeader("retry");
            Header amount = here.lastHeader("amount_cents");
            seenRetry += retry == null ? 0 : ByteBuffer.wrap(retry.value()).getInt();
            seenAmount += amount == null ? 0 : ByteBuffer.wrap(amount.value()).getLong();
            if (!Arrays.equals(HeadersSerializer.serialize(here), encoded[row])) {
                throw new IllegalStateException("row " + row + " is not written back as it was read");
            }
        }
        expect("rows", rows, encoded.length);
        expect("headers", headers, seenHeaders);
        expect("key bytes", keyBytes, seenKeyBytes);
        expect("value bytes", valueBytes, seenValueBytes);
        expect("null values", nulls, seenNulls);
        expect("sum of retry", retrySum, seenRetry);
        expect("sum of amount_cents", amountSum, seenAmount);
    }

    @Benchmark
    public void decode(Blackhole hole) {
        for (byte[] block : encoded) {
            for (Header header : HeadersDeserializer.deserialize(block)) {
                hole.consume(header.key());
                hole.consume(header.value());
            }
        }
    }

    @Benchmark
    public void encode(Blackhole hole) {
        for (Headers headers : decoded) {
            hole.consume(HeadersSerializer.serialize(headers));
        }
    }

    /** What a Java program does for three typed headers: read them all, then ask for the last of each key. */
    @Benchmark
    public void select(Blackhole hole) {
        for (byte[] block : encoded) {
            Headers headers = HeadersDeserializer.deserialize(block);
            Header tenant = headers.lastHeader("tenant");
            Header retry = headers.lastHeader("retry");
            Header amount = headers.lastHeader("amount_cents");
            hole.consume(tenant == null ? null : new String(tenant.value(), StandardCharsets.UTF_8));
            hole.consume(retry == null ? 0 : ByteBuffer.wrap(retry.value()).getInt());
            hole.consume(amount == null ? 0 : ByteBuffer.wrap(amount.value()).getLong());
        }
    }

    /** Run all three. Arguments: quick|full, file of blocks, the seven answers, file for the JSON result. */
    public static void main(String[] arguments) throws Exception {
        boolean quick = arguments[0].equals("quick");
        ChainedOptionsBuilder options = new OptionsBuilder()
            .include(HeadersBenchmark.class.getName())
            .param("blocks", arguments[1])
            .param("rows", arguments[2])
            .param("headers", arguments[3])
            .param("keyBytes", arguments[4])
            .param("valueBytes", arguments[5])
            .param("nulls", arguments[6])
            .param("retrySum", arguments[7])
            .param("amountSum", arguments[8])
            .shouldFailOnError(true)
            .resultFormat(ResultFormatType.JSON)
            .result(arguments[9])
            .forks(quick ? 1 : 2)
            .warmupIterations(quick ? 0 : 4)
            .warmupTime(TimeValue.seconds(1))
            .measurementIterations(quick ? 1 : 5)
            .measurementTime(quick ? TimeValue.milliseconds(100) : TimeValue.seconds(1))
            // One core for everything, as for the other sides: the serial collector is the cheapest there.
            .jvmArgsAppend("-Xms1g", "-Xmx1g", "-XX:+UseSerialGC");
        Collection<RunResult> results = new Runner(options.build()).run();
        double headers = Double.parseDouble(arguments[3]);
        for (RunResult result : results) {
            System.out.printf(
                "%s: %.2f ns/header%s%n",
                result.getPrimaryResult().getLabel(),
                result.getPrimaryResult().getScore() / headers,
                quick ? " (one short iteration: the answers were checked, the time means nothing)" : "");
        }
    }

    private static byte[][] readBlocks(Path file) throws IOException {
        try (DataInputStream in = new DataInputStream(new BufferedInputStream(Files.newInputStream(file)))) {
            byte[][] blocks = new byte[in.readInt()][];
            for (int row = 0; row < blocks.length; row++) {
                blocks[row] = in.readNBytes(in.readInt());
            }
            return blocks;
        }
    }

    private static void expect(String what, long expected, long seen) {
        if (expected != seen) {
            throw new IllegalStateException(what + ": expected " + expected + ", Kafka read " + seen);
        }
    }
}
