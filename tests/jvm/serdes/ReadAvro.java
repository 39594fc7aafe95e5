import io.apicurio.registry.serde.avro.AvroKafkaDeserializer;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Map;
import java.util.Scanner;

/** Prints each value of standard input, which is hexadecimal, as Apicurio's deserializer reads it. */
public final class ReadAvro {
    private ReadAvro() {}

    public static void main(String[] arguments) {
        try (var deserializer = new AvroKafkaDeserializer<Object>();
                var lines = new Scanner(System.in, StandardCharsets.UTF_8)) {
            deserializer.configure(
                    Map.of(
                            "apicurio.registry.url", arguments[0],
                            // The ids of Confluent's API are those of contents.
                            "apicurio.registry.as-confluent", "true",
                            "apicurio.registry.use-id", "contentId"),
                    false);
            var out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
            while (lines.hasNextLine()) {
                out.println(deserializer.deserialize(arguments[1], HexFormat.of().parseHex(lines.nextLine())));
            }
        }
    }
}
