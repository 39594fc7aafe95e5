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
    /** A file of blocks: int32 count, the int32 length of each, then the bytes of all. */
    @Param("") public String blocks;

    /** What these blocks are, for whoever reads the results. */
    @Param("") public String corpus;

    /** How many of them are read, from the first on. */
    @Param("-1") public int rows;

    // The keys of a string, an int and a long.
    @Param("") public String text;
    @Param("") public String number;
    @Param("") public String amount;

    // The answer, worked out by another program: what these blocks hold.
    @Param("-1") public long headers;
    @Param("-1") public long keyBytes;
    @Param("-1") public long valueBytes;
    @Param("-1") public long nulls;
    @Param("-1") public long textBytes;
    @Param("-1") public long numberSum;
    @Param("-1") public long amountSum;

    private byte[][] encoded;
    private Headers[] decoded;

    @Setup
    public void readAndCheck() throws IOException {
        encoded = readBlocks(Path.of(blocks), rows);
        decoded = new Headers[encoded.length];
        long seenHeaders = 0;
        long seenKeyBytes = 0;
        long seenValueBytes = 0;
        long seenNulls = 0;
        long seenText = 0;
        long seenNumber = 0;
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
            Header seen = here.lastHeader(text);
            seenText += seen == null ? 0 : seen.value().length;
            seen = here.lastHeader(number);
            seenNumber += seen == null ? 0 : ByteBuffer.wrap(seen.value()).getInt();
            seen = here.lastHeader(amount);
            seenAmount += seen == null ? 0 : ByteBuffer.wrap(seen.value()).getLong();
            if (!Arrays.equals(HeadersSerializer.serialize(here), encoded[row])) {
                throw new IllegalStateException("row " + row + " is not written back as it was read");
            }
        }
        expect("headers", headers, seenHeaders);
        expect("key bytes", keyBytes, seenKeyBytes);
        expect("value bytes", valueBytes, seenValueBytes);
        expect("null values", nulls, seenNulls);
        expect("bytes of " + text, textBytes, seenText);
        expect("sum of " + number, numberSum, seenNumber);
        expect("sum of " + amount, amountSum, seenAmount);
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
            Header found = headers.lastHeader(text);
            hole.consume(found == null ? null : new String(found.value(), StandardCharsets.UTF_8));
            found = headers.lastHeader(number);
            hole.consume(found == null ? 0 : ByteBuffer.wrap(found.value()).getInt());
            found = headers.lastHeader(amount);
            hole.consume(found == null ? 0 : ByteBuffer.wrap(found.value()).getLong());
        }
    }

    /**
     * Run all three. Arguments: quick, turn or full, a file for the JSON result, then name=value of every parameter. A turn
     * is a short one of several: whoever takes turns puts them together.
     */
    public static void main(String[] arguments) throws Exception {
        boolean quick = arguments[0].equals("quick");
        boolean full = arguments[0].equals("full");
        ChainedOptionsBuilder options = new OptionsBuilder()
            .include(HeadersBenchmark.class.getName())
            .shouldFailOnError(true)
            .resultFormat(ResultFormatType.JSON)
            .result(arguments[1])
            .forks(full ? 2 : 1)
            .warmupIterations(quick ? 0 : full ? 4 : 2)
            .warmupTime(TimeValue.seconds(1))
            .measurementIterations(quick ? 1 : full ? 5 : 3)
            .measurementTime(TimeValue.milliseconds(quick ? 100 : full ? 1000 : 500))
            // One core for everything, as for the other sides: the serial collector is the cheapest there.
            .jvmArgsAppend("-Xms1g", "-Xmx1g", "-XX:+UseSerialGC");
        for (String argument : Arrays.asList(arguments).subList(2, arguments.length)) {
            String[] parameter = argument.split("=", 2);
            options.param(parameter[0], parameter[1]);
        }
        Collection<RunResult> results = new Runner(options.build()).run();
        for (RunResult result : results) {
            double headers = Double.parseDouble(result.getParams().getParam("headers"));
            System.out.printf(
                "%s: %.2f ns/header%s%n",
                result.getPrimaryResult().getLabel(),
                result.getPrimaryResult().getScore() / headers,
                quick ? " (one short iteration: the answers were checked, the time means nothing)" : "");
        }
    }

    private static byte[][] readBlocks(Path file, int rows) throws IOException {
        try (DataInputStream in = new DataInputStream(new BufferedInputStream(Files.newInputStream(file)))) {
            int[] lengths = new int[in.readInt()];
            for (int row = 0; row < lengths.length; row++) {
                lengths[row] = in.readInt();
            }
            byte[][] blocks = new byte[rows][];
            for (int row = 0; row < rows; row++) {
                blocks[row] = in.readNBytes(lengths[row]);
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
