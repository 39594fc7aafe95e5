// In Kafka's package because HeadersDeserializer is package-private there.
package org.apache.kafka.streams.state.internals;

import java.nio.ByteBuffer;
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

    /** Three typed headers of a cell of a store: read all of them, then ask for the last of each key. */
    public static final class SelectFromCell implements UDF1<byte[], Row> {
        @Override
        public Row call(byte[] cell) {
            Headers headers = readHeaders(ByteBuffer.wrap(cell));
            return selected(
                valueOf(headers.lastHeader("tenant")),
                valueOf(headers.lastHeader("retry")),
                valueOf(headers.lastHeader("amount_cents")));
        }

        private static byte[] valueOf(Header header) {
            return header == null ? null : header.value();
        }
    }

    /** Three typed headers of a list column: one walk over the list, the last of each key stays. */
    public static final class SelectFromList implements UDF1<Seq<Row>, Row> {
        @Override
        public Row call(Seq<Row> headers) {
            byte[] tenant = null;
            byte[] retry = null;
            byte[] amount = null;
            int count = headers == null ? 0 : headers.length();
            for (int index = 0; index < count; index++) {
                Row header = headers.apply(index);
                switch (header.getString(0)) {
                    case "tenant" -> tenant = header.getAs(1);
                    case "retry" -> retry = header.getAs(1);
                    case "amount_cents" -> amount = header.getAs(1);
                    default -> {}
                }
            }
            return selected(tenant, retry, amount);
        }
    }

    /** All headers of a cell of a store, its timestamp, and its payload. */
    public static final class DecodeCell implements UDF1<byte[], Row> {
        @Override
        public Row call(byte[] cell) {
            ByteBuffer buffer = ByteBuffer.wrap(cell);
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

    /** Read the block that a cell begins with, behind its size, as the stores do. */
    private static Headers readHeaders(ByteBuffer cell) {
        byte[] block = new byte[ByteUtils.readVarint(cell)];
        cell.get(block);
        return HeadersDeserializer.deserialize(block);
    }

    private static Row selected(byte[] tenant, byte[] retry, byte[] amount) {
        return RowFactory.create(
            tenant == null ? null : new String(tenant, StandardCharsets.UTF_8),
            retry == null ? null : ByteBuffer.wrap(retry).getInt(),
            amount == null ? null : ByteBuffer.wrap(amount).getLong());
    }
}
