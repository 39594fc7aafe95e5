package letterhead.testing.streams;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.serialization.Serdes;

/** Prints values as Kafka's serializers write them, by the name of their class and as text: the types of KIP-1308. */
public final class Serialized {
    private static final Object[] VALUES = {
        "",
        "grün",
        (short) -2,
        Short.MAX_VALUE,
        3,
        Integer.MIN_VALUE,
        3L,
        Long.MIN_VALUE,
        1.5f,
        Float.NEGATIVE_INFINITY,
        -0.1,
        Double.MAX_VALUE,
        true,
        false,
    };

    private Serialized() {}

    public static void main(String[] arguments) {
        for (Object value : VALUES) {
            ObjectNode line = Json.MAPPER.createObjectNode();
            line.put("type", value.getClass().getSimpleName());
            line.putPOJO("value", value instanceof Float || value instanceof Double ? value.toString() : value);
            line.put("bytes", Json.hex(serialized(value)));
            System.out.println(line);
        }
    }

    @SuppressWarnings("unchecked")
    private static byte[] serialized(Object value) {
        return Serdes.serdeFrom((Class<Object>) value.getClass()).serializer().serialize("topic", value);
    }
}
