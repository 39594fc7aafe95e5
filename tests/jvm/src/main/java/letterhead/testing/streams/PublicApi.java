package letterhead.testing.streams;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.net.URI;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.apache.kafka.streams.state.KeyValueStore;

/** Prints the public methods that each public class of some packages of Kafka Streams declares, as one object of JSON. */
public final class PublicApi {
    private PublicApi() {}

    /** Prints the packages that the arguments name. */
    public static void main(String[] packages) throws Exception {
        URI jar = URI.create(
                "jar:" + KeyValueStore.class.getProtectionDomain().getCodeSource().getLocation());
        ObjectNode classes = Json.MAPPER.createObjectNode();
        try (FileSystem files = FileSystems.newFileSystem(jar, Map.of())) {
            for (String name : packages) {
                for (Path file : classFiles(files.getPath(name.replace('.', '/')))) {
                    String simple = file.getFileName().toString().replace(".class", "");
                    Class<?> type = Class.forName(name + "." + simple);
                    if (!simple.contains("$") && Modifier.isPublic(type.getModifiers())) {
                        ArrayNode methods = classes.putArray(type.getSimpleName());
                        new TreeSet<>(names(type)).forEach(methods::add);
                    }
                }
            }
        }
        System.out.println(classes);
    }

    private static List<Path> classFiles(Path directory) throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            return files.filter(file -> file.toString().endsWith(".class")).sorted().toList();
        }
    }

    private static List<String> names(Class<?> type) {
        return Arrays.stream(type.getDeclaredMethods())
                .filter(method -> Modifier.isPublic(method.getModifiers()) && !method.isSynthetic())
                .map(Method::getName)
                .toList();
    }
}
