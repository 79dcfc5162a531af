import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;
import java.util.Base64;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's command line tools one after the other in one process, which saves most of their time.
 *
 * <p>Each line of the standard input is a class and its arguments, in base64 and separated by blanks
 * ("-" for an empty one). Each is answered by a line: exit status and what was printed, in base64.
 */
final class Tools {
    private static final class Ended extends RuntimeException {
        final int status;

        Ended(int status) {
            super(null, null, false, false);
            this.status = status;
        }
    }

    public static void main(String[] ignored) throws Exception {
        PrintStream answers = System.out;
        // Once and for all: Scala keeps the stream that it finds first.
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        System.setOut(new PrintStream(printed, true));
        Exit.setExitProcedure((status, message) -> { throw new Ended(status); });
        Exit.setHaltProcedure((status, message) -> { throw new Ended(status); });
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = Arrays.stream(line.split(" ")).map(Tools::decode).toArray(String[]::new);
            printed.reset();
            int status = run(words[0], Arrays.copyOfRange(words, 1, words.length));
            System.out.flush();
            answers.println(status + " " + Base64.getEncoder().encodeToString(printed.toByteArray()) + ".");
            answers.flush();
        }
    }

    private static int run(String tool, String[] arguments) throws Exception {
        try {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) arguments);
            return 0;
        } catch (InvocationTargetException e) {
            Throwable cause = e.getCause();
            if (cause instanceof Ended) return ((Ended) cause).status;
            System.out.println(cause);
            return 1;
        }
    }

    private static String decode(String word) {
        return word.equals("-") ? "" : new String(Base64.getDecoder().decode(word));
    }
}
