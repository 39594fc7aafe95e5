package letterhead.testing.streams;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/**
 * Runs Kafka Streams' own stores for a program that writes commands to standard input and reads answers from standard
 * output: one line of JSON each, in turn.
 *
 * <ul>
 *   <li>{@code {"do": "open", "directory": task directory, "config": …}} answers {@code {"store": number}}
 *   <li>{@code {"do": "step", "store": number, "record": …, "ops": […]}} answers {@code {"results": […], "changelog": […]}}
 *   <li>{@code {"do": "dsl", "directory": task directory, "config": …}} answers with the records of each topic that
 *       {@link DslRun} wrote
 *   <li>{@code {"do": "close", "store": number}} answers {@code {"changelog": […]}}
 * </ul>
 *
 * What fails answers {@code {"error": {"exception": class, "message": text, "trace": text}}}. The program ends with its
 * input.
 */
public final class StoreServer {
    private final Map<Integer, StoreRun> runs = new HashMap<>();
    private int opened = 0;

    public static void main(String[] arguments) throws IOException {
        PrintStream answers = System.out;
        System.setOut(System.err); // what else is printed is no answer
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StoreServer server = new StoreServer();
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            byte[] answer = Json.MAPPER.writeValueAsBytes(server.answer(line));
            answers.write(answer, 0, answer.length);
            answers.write('\n');
            answers.flush();
        }
    }

    private ObjectNode answer(String line) {
        try {
            return perform(Json.MAPPER.readTree(line));
        } catch (Exception error) {
            StringWriter trace = new StringWriter();
            error.printStackTrace(new PrintWriter(trace));
            ObjectNode answer = Json.MAPPER.createObjectNode();
            answer.putObject("error")
                    .put("exception", error.getClass().getName())
                    .put("message", error.getMessage())
                    .put("trace", trace.toString());
            return answer;
        }
    }

    private ObjectNode perform(JsonNode command) throws IOException {
        String what = command.get("do").textValue();
        if (what.equals("open")) {
            StoreRun run = new StoreRun(Path.of(command.get("directory").textValue()), command.get("config"));
            runs.put(++opened, run);
            return Json.MAPPER.createObjectNode().put("store", opened);
        }
        if (what.equals("dsl")) {
            return DslRun.run(Path.of(command.get("directory").textValue()), command.get("config"));
        }
        int store = command.get("store").intValue();
        return switch (what) {
            case "step" -> runs.get(store).step(command.get("record"), command.get("ops"));
            case "close" -> runs.remove(store).close();
            default -> throw new IllegalArgumentException("a command that is not known: " + what);
        };
    }
}
