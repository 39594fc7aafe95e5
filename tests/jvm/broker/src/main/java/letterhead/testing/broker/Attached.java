package letterhead.testing.broker;

import java.io.IOException;
import kafka.Kafka;

/**
 * A broker that stops when its standard input ends: so it does not outlive tests that were ended from outside.
 *
 * <p>Arguments: those of {@code kafka.Kafka}.
 */
public final class Attached {
    private Attached() {}

    public static void main(String[] arguments) {
        stopAtTheEndOfInput();
        Kafka.main(arguments);
    }

    /** Ends this process when its standard input ends. */
    static void stopAtTheEndOfInput() {
        Thread watch = new Thread(Attached::readToTheEnd, "end-of-input");
        watch.setDaemon(true);
        watch.start();
    }

    private static void readToTheEnd() {
        try {
            System.in.readAllBytes();
        } catch (IOException e) {
            // There will be no more input either.
        }
        System.exit(0);
    }
}
