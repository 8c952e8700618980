import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;

/** An argument that may be left out names a file of properties: who a client is. */
final class Login {
    private Login() { }

    static Properties settings(String[] arguments, int place) throws IOException {
        Properties settings = new Properties();
        if (arguments.length > place) {
            settings.load(Files.newBufferedReader(Path.of(arguments[place])));
        }
        return settings;
    }
}
