import java.io.IOException;

/** Standard input ends when a program is to stop. */
final class EndOfInput {
    private static volatile boolean seen = false;

    private EndOfInput() { }

    static void watch() {
        Thread watcher = new Thread(() -> {
            try {
                while (System.in.read() >= 0) { }
            } catch (IOException closed) {
                // The same as the end.
            }
            seen = true;
        });
        watcher.setDaemon(true);
        watcher.start();
    }

    static boolean wasSeen() {
        return seen;
    }
}
