import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;

/**
 * What re2j, which Kafka has, says of expressions. A line is an expression and names, in base64, with spaces between;
 * the answer is `refused`, or a 1 or 0 for each name: whether it matches as a whole.
 */
public final class RegexJudge {
    private RegexJudge() {}

    public static void main(String[] arguments) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(judged(line.split(" ")));
        }
    }

    private static String judged(String[] texts) {
        try {
            Pattern pattern = Pattern.compile(decoded(texts[0]));
            StringBuilder answers = new StringBuilder();
            for (int i = 1; i < texts.length; i++) {
                answers.append(pattern.matcher(decoded(texts[i])).matches() ? '1' : '0');
            }
            return answers.toString();
        } catch (PatternSyntaxException refused) {
            return "refused";
        }
    }

    private static String decoded(String text) {
        return new String(Base64.getDecoder().decode(text), StandardCharsets.UTF_8);
    }
}
