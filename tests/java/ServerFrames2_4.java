import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Golden frames of the server's side by the classes of Kafka 2.4 and later. Argument: cases file.
 *
 * <p>Classes and fields are reached by reflection, as they have been added and renamed since 2.4.
 */
final class ServerFrames2_4 {
    private static final Map<String, String> FORMER_APIS = Map.of("AlterPartition", "AlterIsr");
    private static final Map<String, String> FORMER_FIELDS =
            Map.of("topicName", "name", "partitionEpoch", "currentIsrVersion", "partitions", "partitionId");

    public static void main(String[] args) throws Exception {
        for (ServerCases.Case c : ServerCases.read(Path.of(args[0]))) {
            Class<?> type = dataClass(c);
            if (type == null) continue;
            ApiMessage message;
            try {
                message = (ApiMessage) make(type, c.fields());
            } catch (ServerCases.MissingFieldException e) {
                continue;
            }
            for (short v = c.first(); v <= Math.min(c.last(), message.highestSupportedVersion()); v++) {
                System.out.println(c.line(v, HexFormat.of().formatHex(frame(c, message, v))));
            }
        }
    }

    private static Class<?> dataClass(ServerCases.Case c) {
        for (String api : List.of(c.api(), FORMER_APIS.getOrDefault(c.api(), c.api()))) {
            try {
                return Class.forName(
                        "org.apache.kafka.common.message." + api + (c.isRequest() ? "Request" : "Response") + "Data");
            } catch (ClassNotFoundException e) {
                // this release has another name for it, or does not have it
            }
        }
        return null;
    }

    private static byte[] frame(ServerCases.Case c, ApiMessage message, short version) {
        ApiKeys api = ApiKeys.forId(message.apiKey());
        ApiMessage header;
        short headerVersion;
        if (c.isRequest()) {
            header = new RequestHeaderData()
                    .setRequestApiKey(message.apiKey())
                    .setRequestApiVersion(version)
                    .setClientId(ServerCases.CLIENT_ID)
                    .setCorrelationId(ServerCases.CORRELATION_ID);
            headerVersion = api.requestHeaderVersion(version);
            if (headerVersion == 0) ((RequestHeaderData) header).setClientId("");
        } else {
            header = new ResponseHeaderData().setCorrelationId(ServerCases.CORRELATION_ID);
            headerVersion = api.responseHeaderVersion(version);
        }
        ObjectSerializationCache headerCache = new ObjectSerializationCache();
        ObjectSerializationCache cache = new ObjectSerializationCache();
        int size = header.size(headerCache, headerVersion) + message.size(cache, version);
        ByteBuffer buffer = ByteBuffer.allocate(size);
        ByteBufferAccessor accessor = new ByteBufferAccessor(buffer);
        header.write(accessor, headerCache, headerVersion);
        message.write(accessor, cache, version);
        return buffer.array();
    }

    private static Object make(Class<?> type, JsonNode fields) throws Exception {
        Object made = type.getConstructor().newInstance();
        for (Iterator<Map.Entry<String, JsonNode>> i = fields.fields(); i.hasNext();) {
            Map.Entry<String, JsonNode> field = i.next();
            Method setter = setter(type, field.getKey());
            if (setter == null) setter = setter(type, FORMER_FIELDS.getOrDefault(field.getKey(), field.getKey()));
            if (setter == null) throw new ServerCases.MissingFieldException();
            setter.invoke(made, value(setter.getGenericParameterTypes()[0], field.getValue()));
        }
        return made;
    }

    private static Method setter(Class<?> type, String field) {
        String name = "set" + Character.toUpperCase(field.charAt(0)) + field.substring(1);
        for (Method method : type.getMethods()) {
            if (method.getName().equals(name)) return method;
        }
        return null;
    }

    private static Object value(Type type, JsonNode node) throws Exception {
        if (node.isNull()) return null;
        if (type == byte.class) return (byte) node.intValue();
        if (type == short.class) return (short) node.intValue();
        if (type == int.class || type == Integer.class) return node.intValue();
        if (type == long.class) return node.longValue();
        if (type == boolean.class) return node.booleanValue();
        if (type == String.class) return node.textValue();
        if (type == byte[].class) return node.binaryValue();
        if (type instanceof ParameterizedType list) {
            return elements(new ArrayList<>(), list.getActualTypeArguments()[0], node);
        }
        Class<?> owner = (Class<?>) type;
        if (Collection.class.isAssignableFrom(owner)) {
            Type element = ((ParameterizedType) owner.getGenericSuperclass()).getActualTypeArguments()[0];
            @SuppressWarnings("unchecked")
            Collection<Object> collection = (Collection<Object>) owner.getConstructor().newInstance();
            return elements(collection, element, node);
        }
        if (owner.getSimpleName().equals("Uuid")) {
            UUID uuid = UUID.fromString(node.textValue());
            Constructor<?> constructor = owner.getConstructor(long.class, long.class);
            return constructor.newInstance(uuid.getMostSignificantBits(), uuid.getLeastSignificantBits());
        }
        return make(owner, node);
    }

    private static Collection<Object> elements(Collection<Object> into, Type type, JsonNode nodes) throws Exception {
        for (JsonNode node : nodes) into.add(value(type, node));
        return into;
    }
}
