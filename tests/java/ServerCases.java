import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Reads server_cases.txt, which describes its own format. */
final class ServerCases {
    static final String CLIENT_ID = "7";
    static final int CORRELATION_ID = 42;

    record Case(String name, String api, boolean isRequest, short first, short last, JsonNode fields) {
        String line(short version, String frame) {
            return String.join(" ", name, api, isRequest ? "request" : "response", Short.toString(version), frame);
        }
    }

    /** This release does not have a field of the case. */
    static final class MissingFieldException extends Exception {}

    private ServerCases() {}

    static List<Case> read(Path path) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        List<Case> cases = new ArrayList<>();
        for (String line : Files.readAllLines(path, StandardCharsets.UTF_8)) {
            if (line.isBlank() || line.startsWith("#")) continue;
            String[] f = line.split(" ", 5);
            String[] versions = f[3].split("\\.\\.");
            cases.add(new Case(f[0], f[1], f[2].equals("request"), Short.parseShort(versions[0]),
                    Short.parseShort(versions[1]), mapper.readTree(f[4])));
        }
        return cases;
    }
}
