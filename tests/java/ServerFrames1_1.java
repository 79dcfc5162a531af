import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.types.ArrayOf;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.Struct;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.ResponseHeader;

/** Golden frames of the server's side by the schemas of Kafka 1.1. Argument: cases file. */
final class ServerFrames1_1 {
    /** Names of this release for those of Kafka 3.9; the first that a structure has. */
    private static final Map<String, List<String>> NAMES = Map.ofEntries(
            Map.entry("remainingPartitions", List.of("partitions_remaining")),
            Map.entry("topicName", List.of("topic")),
            Map.entry("partitionIndex", List.of("partition")),
            Map.entry("apiKeys", List.of("api_versions")),
            Map.entry("mechanisms", List.of("enabled_mechanisms")),
            Map.entry("authBytes", List.of("sasl_auth_bytes")),
            Map.entry("topics", List.of("create_topic_requests", "topic_errors")),
            Map.entry("name", List.of("topic", "config_name")),
            Map.entry("assignments", List.of("replica_assignment")),
            Map.entry("brokerIds", List.of("replicas")),
            Map.entry("configs", List.of("config_entries")),
            Map.entry("value", List.of("config_value")),
            Map.entry("timeoutMs", List.of("timeout")),
            Map.entry("topicNames", List.of("topics")),
            Map.entry("responses", List.of("topic_error_codes")),
            Map.entry("results", List.of("resources")),
            Map.entry("configurationKeys", List.of("config_names")),
            Map.entry("synonyms", List.of("config_synonyms")),
            Map.entry("source", List.of("config_source")));

    public static void main(String[] args) throws Exception {
        for (ServerCases.Case c : ServerCases.read(Path.of(args[0]))) {
            ApiKeys api = api(c.api());
            if (api == null) continue;
            for (short v = c.first(); v <= Math.min(c.last(), api.latestVersion()); v++) {
                Struct body;
                try {
                    body = make(c.isRequest() ? api.requestSchema(v) : api.responseSchema(v), c.fields());
                } catch (ServerCases.MissingFieldException e) {
                    continue;
                }
                Struct header = c.isRequest()
                        ? new RequestHeader(api, v, ServerCases.CLIENT_ID, ServerCases.CORRELATION_ID).toStruct()
                        : new ResponseHeader(ServerCases.CORRELATION_ID).toStruct();
                ByteBuffer buffer = ByteBuffer.allocate(header.sizeOf() + body.sizeOf());
                header.writeTo(buffer);
                body.writeTo(buffer);
                System.out.println(c.line(v, HexFormat.of().formatHex(buffer.array())));
            }
        }
    }

    private static ApiKeys api(String name) {
        for (ApiKeys api : ApiKeys.values()) {
            if (api.name.equals(name)) return api;
        }
        return null;
    }

    private static Struct make(Schema schema, JsonNode fields) throws Exception {
        Struct struct = new Struct(schema);
        for (Iterator<Map.Entry<String, JsonNode>> i = fields.fields(); i.hasNext();) {
            Map.Entry<String, JsonNode> field = i.next();
            String usual = field.getKey().replaceAll("([A-Z])", "_$1").toLowerCase();
            BoundField bound = null;
            for (String name : NAMES.getOrDefault(field.getKey(), List.of(usual))) {
                if (bound == null) bound = schema.get(name);
            }
            if (bound == null) throw new ServerCases.MissingFieldException();
            struct.set(bound.def.name, value(bound.def.type, field.getValue()));
        }
        return struct;
    }

    private static Object value(Type type, JsonNode node) throws Exception {
        if (node.isNull()) return null;
        if (type == Type.INT8) return node.numberValue().byteValue();
        if (type == Type.INT16) return (short) node.intValue();
        if (type == Type.INT32) return node.intValue();
        if (type == Type.INT64) return node.longValue();
        if (type == Type.BOOLEAN) return node.booleanValue();
        if (type == Type.STRING || type == Type.NULLABLE_STRING) return node.textValue();
        if (type == Type.BYTES) return ByteBuffer.wrap(node.binaryValue());
        if (type instanceof ArrayOf array) {
            Object[] elements = new Object[node.size()];
            for (int i = 0; i < elements.length; i++) elements[i] = value(array.type(), node.get(i));
            return elements;
        }
        return make((Schema) type, node);
    }
}
