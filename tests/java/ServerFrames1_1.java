import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.Iterator;
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
    private static final Map<String, String> NAMES = Map.of(
            "remainingPartitions", "partitions_remaining",
            "topicName", "topic",
            "partitionIndex", "partition",
            "apiKeys", "api_versions",
            "mechanisms", "enabled_mechanisms",
            "authBytes", "sasl_auth_bytes");

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
            String name = NAMES.getOrDefault(
                    field.getKey(), field.getKey().replaceAll("([A-Z])", "_$1").toLowerCase());
            BoundField bound = schema.get(name);
            if (bound == null) throw new ServerCases.MissingFieldException();
            struct.set(name, value(bound.def.type, field.getValue()));
        }
        return struct;
    }

    private static Object value(Type type, JsonNode node) throws Exception {
        if (node.isNull()) return null;
        if (type == Type.INT16) return (short) node.intValue();
        if (type == Type.INT32) return node.intValue();
        if (type == Type.INT64) return node.longValue();
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
