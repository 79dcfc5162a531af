import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.InputStreamReader;
import java.io.BufferedReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.record.TimestampType;

/**
 * What the classes of one Kafka release, the one on the class path, make of topic configurations.
 *
 * <p>"definitions" prints what the release defines, as one JSON object. "verdicts" reads one case per
 * line, {"broker": {...}, "existing": {...}, "config": {...}}, and answers each with a line
 * {"admin": reason or null, "load": reason or null}: why the Admin API of a broker with those settings
 * refuses to set the configuration, and why the broker fails to load or to apply it. Reflection
 * bridges the releases: classes and signatures moved between them.
 */
public final class TopicConfigs {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int PROBED = 200_000;
    private static final String MESSAGE_FORMAT = "message.format.version";
    private static final Class<?> LOG_CONFIG = firstClass(
            "org.apache.kafka.storage.internals.log.LogConfig",
            "org.apache.kafka.server.log.internals.LogConfig",
            "kafka.log.LogConfig");

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StringBuilder answers = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            if (line.equals("definitions")) {
                answers.append(JSON.writeValueAsString(definitions())).append('\n');
                continue;
            }
            Map<String, Map<String, String>> given =
                    JSON.readValue(line, new TypeReference<Map<String, Map<String, String>>>() { });
            answers.append(JSON.writeValueAsString(verdict(given))).append('\n');
        }
        System.out.print(answers);
    }

    // Definitions

    private static Map<String, Object> definitions() throws Exception {
        Map<String, Object> all = new LinkedHashMap<>();
        all.put("keys", keys());
        all.put("format_versions", formatVersions());
        all.put("api_versions", apiVersions());
        return all;
    }

    private static Map<String, Object> keys() throws Exception {
        Map<String, Object> described = new TreeMap<>();
        for (ConfigDef.ConfigKey key : configDef().configKeys().values()) {
            described.put(key.name, describe(key));
        }
        return described;
    }

    private static ConfigDef configDef() throws Exception {
        for (Class<?> owner : Arrays.asList(LOG_CONFIG, companion(LOG_CONFIG))) {
            if (owner == null) {
                continue;
            }
            for (Field field : owner.getDeclaredFields()) {
                if (!ConfigDef.class.isAssignableFrom(field.getType())) {
                    continue;
                }
                field.setAccessible(true);
                Object self = Modifier.isStatic(field.getModifiers()) ? null : module(owner);
                ConfigDef definition = (ConfigDef) field.get(self);
                if (definition != null && definition.names().contains("retention.ms")) {
                    return definition;
                }
            }
        }
        throw new IllegalStateException("no ConfigDef in " + LOG_CONFIG);
    }

    private static Map<String, Object> describe(ConfigDef.ConfigKey key) throws Exception {
        Map<String, Object> described = new LinkedHashMap<>();
        described.put("type", key.type.name());
        ConfigDef.Validator validator = key.validator;
        String kind = validator == null ? "" : validator.getClass().getName();
        if (validator instanceof ConfigDef.Range) {
            described.put("ranges", List.of(Arrays.asList(field(validator, "min"), field(validator, "max"))));
        } else if (validator instanceof ConfigDef.ValidString) {
            described.put("choices", field(validator, "validStrings"));
        } else if (validator instanceof ConfigDef.ValidList) {
            described.put("choices", field(field(validator, "validString"), "validStrings"));
        } else if (kind.contains("ThrottledReplicaListValidator")) {
            described.put("type", "THROTTLED_REPLICAS");
        } else if (key.name.equals(MESSAGE_FORMAT)) {
            described.put("type", "FORMAT_VERSION");
        } else if (key.type == ConfigDef.Type.STRING) {
            described.put("choices", loadable(key.name));
        } else if (key.type == ConfigDef.Type.INT && validator != null) {
            described.put("ranges", probe(key.name, validator));
        } else if (validator != null) {
            throw new IllegalStateException("unknown validator " + kind + " of " + key.name);
        }
        return described;
    }

    /** What a string without validator may be: all of these go by the names of timestamp types. */
    private static List<String> loadable(String key) throws Exception {
        List<String> legal = new ArrayList<>();
        for (TimestampType type : TimestampType.values()) {
            if (loads(key, type.name)) {
                legal.add(type.name);
            }
        }
        return legal;
    }

    /** What a validator accepts that does not tell its bounds. */
    private static List<List<Integer>> probe(String name, ConfigDef.Validator validator) {
        List<List<Integer>> ranges = new ArrayList<>();
        Integer begin = null;
        for (int value = -PROBED; value <= PROBED; value++) {
            boolean legal = true;
            try {
                validator.ensureValid(name, value);
            } catch (RuntimeException e) {
                legal = false;
            }
            if (legal && begin == null) {
                begin = value;
            } else if (!legal && begin != null) {
                ranges.add(List.of(begin, value - 1));
                begin = null;
            }
        }
        if (begin != null) {
            throw new IllegalStateException(name + " has bounds beyond those probed");
        }
        return ranges;
    }

    private static List<String> formatVersions() throws Exception {
        List<String> candidates = new ArrayList<>();
        for (String release : List.of("0.8.0", "0.8.1", "0.8.2", "0.9.0", "0.10.0", "0.10.1", "0.10.2", "0.11.0")) {
            addFormats(candidates, release);
        }
        for (int major = 1; major <= 4; major++) {
            for (int minor = 0; minor <= 20; minor++) {
                addFormats(candidates, major + "." + minor);
            }
        }
        List<String> legal = new ArrayList<>();
        for (String candidate : candidates) {
            if (loads(MESSAGE_FORMAT, candidate)) {
                legal.add(candidate);
            }
        }
        return legal;
    }

    /** Whether a topic can be loaded that has this value: some releases have no validator to ask. */
    private static boolean loads(String key, String value) throws Exception {
        Properties config = new Properties();
        config.put(key, value);
        return failure(() -> method(LOG_CONFIG, "fromProps", Map.class, Properties.class)
                .invoke(null, Map.of(), config)) == null;
    }

    private static void addFormats(List<String> candidates, String release) {
        candidates.add(release);
        for (int internal = 0; internal <= 40; internal++) {
            candidates.add(release + "-IV" + internal);
        }
    }

    /** The newest version of each API that a broker in ZooKeeper mode serves whatever it is configured to. */
    @SuppressWarnings("unchecked")
    private static Map<String, Integer> apiVersions() throws Exception {
        Map<String, Integer> newest = new TreeMap<>();
        Iterable<ApiKeys> served;
        try {
            served = (Iterable<ApiKeys>) ApiKeys.class.getMethod("zkBrokerApis").invoke(null);
        } catch (NoSuchMethodException e) {
            served = Arrays.asList(ApiKeys.values());
        }
        for (ApiKeys api : served) {
            if (api.minRequiredInterBrokerMagic == 0) {
                newest.put(Integer.toString(api.id), (int) latestStableVersion(api));
            }
        }
        return newest;
    }

    private static short latestStableVersion(ApiKeys api) throws Exception {
        Method choosing = method(ApiKeys.class, "latestVersion", boolean.class);
        return choosing == null ? api.latestVersion() : (Short) choosing.invoke(api, false);
    }

    // Verdicts

    private static final Map<Map<String, String>, Object[]> BROKERS = new HashMap<>();

    private static Map<String, String> verdict(Map<String, Map<String, String>> given) throws Exception {
        Map<String, String> settings = given.getOrDefault("broker", Map.of());
        Object[] broker = BROKERS.get(settings);
        if (broker == null) {
            Object kafkaConfig = kafkaConfig(settings);
            broker = new Object[] {kafkaConfig, logDefaults(kafkaConfig), topicConfigHandler(kafkaConfig)};
            BROKERS.put(settings, broker);
        }
        Properties config = new Properties();
        config.putAll(given.get("config"));
        Map<?, ?> defaults = (Map<?, ?>) broker[1];
        boolean remote = "true".equals(settings.get("remote.log.storage.system.enable"));
        Map<String, String> existing = given.getOrDefault("existing", Map.of());
        Map<String, String> answer = new LinkedHashMap<>();
        answer.put("admin", failure(() -> validate(config, defaults, existing, remote)));
        Object handler = broker[2];
        answer.put("load", failure(() -> load(config, defaults, remote, handler)));
        return answer;
    }

    private static Object kafkaConfig(Map<String, String> settings) throws Exception {
        Properties properties = new Properties();
        properties.put("zookeeper.connect", "localhost:1");
        properties.putAll(settings);
        return method(Class.forName("kafka.server.KafkaConfig"), "fromProps", Properties.class)
                .invoke(null, properties);
    }

    /** What a broker's own settings make of topics without configuration. */
    private static Map<?, ?> logDefaults(Object kafkaConfig) throws Exception {
        Method own = method(kafkaConfig.getClass(), "extractLogConfigMap");
        if (own != null) {
            return (Map<?, ?>) own.invoke(kafkaConfig);
        }
        Method later = method(LOG_CONFIG, "extractLogConfigMap", kafkaConfig.getClass());
        if (later != null) {
            return (Map<?, ?>) later.invoke(null, kafkaConfig);
        }
        Object server = module(Class.forName("kafka.server.KafkaServer$"));
        return (Map<?, ?>) server.getClass().getMethod("copyKafkaConfigToLog", kafkaConfig.getClass())
                .invoke(server, kafkaConfig);
    }

    private static Object topicConfigHandler(Object kafkaConfig) throws Exception {
        Constructor<?> constructor = Class.forName("kafka.server.TopicConfigHandler").getConstructors()[0];
        Object[] values = new Object[constructor.getParameterCount()];
        for (int i = 0; i < values.length; i++) {
            values[i] = constructor.getParameterTypes()[i].isInstance(kafkaConfig) ? kafkaConfig : null;
        }
        return constructor.newInstance(values);
    }

    private static void validate(Properties config, Map<?, ?> defaults, Map<String, String> existing, boolean remote)
            throws Exception {
        // The overload with the most parameters is the one that brokers call.
        Method longest = null;
        for (Method each : LOG_CONFIG.getMethods()) {
            if (each.getName().equals("validate")
                    && (longest == null || each.getParameterCount() > longest.getParameterCount())) {
                longest = each;
            }
        }
        switch (longest.getParameterCount()) {
            case 1 -> longest.invoke(null, config);
            case 3 -> longest.invoke(null, config, defaults, remote);
            case 4 -> longest.invoke(null, existing, config, defaults, remote);
            case 5 -> longest.invoke(null, existing, config, defaults, remote, true);
            default -> throw new IllegalStateException("unknown signature: " + longest);
        }
    }

    /** What a broker does with the configuration of a topic when it starts, or is notified of a change. */
    private static void load(Properties config, Map<?, ?> defaults, boolean remote, Object handler) throws Exception {
        Object logConfig = method(LOG_CONFIG, "fromProps", Map.class, Properties.class)
                .invoke(null, defaults, config);
        Method values = method(LOG_CONFIG, "values");
        Method check = method(LOG_CONFIG, "validateRemoteStorageOnlyIfSystemEnabled", Map.class, boolean.class,
                boolean.class);
        if (check != null) {
            check.invoke(null, values.invoke(logConfig), remote, true);
        }
        Method parse = method(handler.getClass(), "parseThrottledPartitions", Properties.class, int.class,
                String.class);
        for (String key : List.of("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")) {
            if (config.containsKey(key) && !config.getProperty(key).isEmpty()) {
                for (int broker = 0; broker < 4; broker++) {
                    parse.invoke(handler, config, broker, key);
                }
            }
        }
    }

    private interface Attempt {
        void run() throws Exception;
    }

    private static String failure(Attempt attempt) throws Exception {
        try {
            attempt.run();
            return null;
        } catch (InvocationTargetException e) {
            return String.valueOf(e.getCause());
        }
    }

    // Reflection

    private static Object field(Object owner, String name) throws Exception {
        Field field = owner.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(owner);
    }

    private static Object module(Class<?> companion) throws Exception {
        return companion.getField("MODULE$").get(null);
    }

    private static Class<?> companion(Class<?> owner) {
        try {
            return Class.forName(owner.getName() + "$");
        } catch (ClassNotFoundException e) {
            return null;
        }
    }

    private static Class<?> firstClass(String... names) {
        for (String name : names) {
            try {
                return Class.forName(name);
            } catch (ClassNotFoundException e) {
                continue;
            }
        }
        throw new IllegalStateException("none of " + Arrays.toString(names));
    }

    private static Method method(Class<?> owner, String name, Class<?>... parameters) {
        try {
            return owner.getMethod(name, parameters);
        } catch (NoSuchMethodException e) {
            return null;
        }
    }
}
