// In Kafka's package because HeadersDeserializer is package-private there.
package org.apache.kafka.streams.state.internals;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.utils.ByteUtils;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.api.java.UDF1;
import scala.collection.Seq;

/** User-defined functions of Spark that read headers in the JVM; `benches/spark` registers them. */
public final class HeaderUdfs {
    private HeaderUdfs() {}

    /** Three typed headers of a value of a store: read all of them, then ask for the last of each key. */
    public static final class SelectFromValue implements UDF1<byte[], Row> {
        @Override
        public Row call(byte[] value) {
            Headers headers = readHeaders(ByteBuffer.wrap(value));
            return selected(
                valueOf(headers.lastHeader("tenant")),
                valueOf(headers.lastHeader("retry")),
                valueOf(headers.lastHeader("amount_cents")));
        }

        private static byte[] valueOf(Header header) {
            return header == null ? null : header.value();
        }
    }

    /** Three typed headers of a list column. */
    public static final class SelectFromList implements UDF1<Seq<Row>, Row> {
        @Override
        public Row call(Seq<Row> headers) {
            byte[][] values = lastValues(headers);
            return selected(values[0], values[1], values[2]);
        }
    }

    /** The same with letterhead's checks: no key is null, which `switch` refuses, numbers have their size, and text is UTF-8. */
    public static final class SelectFromListChecked implements UDF1<Seq<Row>, Row> {
        @Override
        public Row call(Seq<Row> headers) throws CharacterCodingException {
            byte[][] values = lastValues(headers);
            byte[] tenant = values[0];
            return RowFactory.create(
                tenant == null ? null : StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(tenant)).toString(),
                values[1] == null ? null : checked(values[1], Integer.BYTES).getInt(),
                values[2] == null ? null : checked(values[2], Long.BYTES).getLong());
        }

        private static ByteBuffer checked(byte[] value, int size) {
            if (value.length != size) {
                throw new IllegalArgumentException(value.length + " bytes where " + size + " are expected");
            }
            return ByteBuffer.wrap(value);
        }
    }

    /** One walk over a list: the last value of each key stays. */
    private static byte[][] lastValues(Seq<Row> headers) {
        byte[][] values = new byte[3][];
        int count = headers == null ? 0 : headers.length();
        for (int index = 0; index < count; index++) {
            Row header = headers.apply(index);
            switch (header.getString(0)) {
                case "tenant" -> values[0] = header.getAs(1);
                case "retry" -> values[1] = header.getAs(1);
                case "amount_cents" -> values[2] = header.getAs(1);
                default -> {}
            }
        }
        return values;
    }

    /** All headers of a value of a store, its timestamp, and its payload. */
    public static final class DecodeValue implements UDF1<byte[], Row> {
        @Override
        public Row call(byte[] value) {
            ByteBuffer buffer = ByteBuffer.wrap(value);
            List<Row> headers = new ArrayList<>();
            for (Header header : readHeaders(buffer)) {
                headers.add(RowFactory.create(header.key(), header.value()));
            }
            long timestamp = buffer.getLong();
            byte[] payload = new byte[buffer.remaining()];
            buffer.get(payload);
            return RowFactory.create(headers, timestamp, payload);
        }
    }

    /** Read the headers that a value begins with, after their size, as the stores do. */
    private static Headers readHeaders(ByteBuffer value) {
        byte[] block = new byte[ByteUtils.readVarint(value)];
        value.get(block);
        return HeadersDeserializer.deserialize(block);
    }

    private static Row selected(byte[] tenant, byte[] retry, byte[] amount) {
        return RowFactory.create(
            tenant == null ? null : new String(tenant, StandardCharsets.UTF_8),
            retry == null ? null : ByteBuffer.wrap(retry).getInt(),
            amount == null ? null : ByteBuffer.wrap(amount).getLong());
    }
}
