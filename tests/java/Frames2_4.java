import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.LeaderAndIsrRequestData.LeaderAndIsrPartitionState;
import org.apache.kafka.common.message.UpdateMetadataRequestData.UpdateMetadataBroker;
import org.apache.kafka.common.message.UpdateMetadataRequestData.UpdateMetadataEndpoint;
import org.apache.kafka.common.message.UpdateMetadataRequestData.UpdateMetadataPartitionState;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.DescribeLogDirsRequest;
import org.apache.kafka.common.requests.LeaderAndIsrRequest;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.StopReplicaRequest;
import org.apache.kafka.common.requests.UpdateMetadataRequest;
import org.apache.kafka.common.security.auth.SecurityProtocol;

/**
 * Golden frames by the classes of Kafka 2.4 and later, up to the last with ZooKeeper. Argument: cases file.
 *
 * <p>What has been added or renamed since 2.4 is reached by reflection, so that one source serves all.
 */
final class Frames2_4 {
    public static void main(String[] args) throws Exception {
        for (Cases.Case c : Cases.read(Path.of(args[0]))) {
            for (short v = 0; v <= ApiKeys.LEADER_AND_ISR.latestVersion(); v++) {
                print(c, "leader_and_isr", ApiKeys.LEADER_AND_ISR, v, leaderAndIsr(c, v));
            }
            for (short v = 4; v <= ApiKeys.UPDATE_METADATA.latestVersion(); v++) {
                print(c, "update_metadata", ApiKeys.UPDATE_METADATA, v, updateMetadata(c, v));
            }
            for (short v = 0; v <= ApiKeys.STOP_REPLICA.latestVersion(); v++) {
                if (v >= 3) {
                    if (!c.stops.isEmpty()) print(c, "stop_replica", ApiKeys.STOP_REPLICA, v, stopReplica(c, v, false, c.stops));
                    continue;
                }
                for (boolean delete : new boolean[] {true, false}) {
                    List<Cases.Stop> stops = c.stops.stream().filter(s -> s.delete() == delete).toList();
                    if (stops.isEmpty()) continue;
                    String name = delete ? "stop_replica_delete" : "stop_replica_keep";
                    print(c, name, ApiKeys.STOP_REPLICA, v, stopReplica(c, v, delete, stops));
                }
            }
            for (short v = 0; v <= 1; v++) {
                print(c, "describe_log_dirs", ApiKeys.DESCRIBE_LOG_DIRS, v, describeLogDirs(v));
            }
        }
    }

    private static AbstractRequest leaderAndIsr(Cases.Case c, short version) throws Exception {
        List<LeaderAndIsrPartitionState> states = new ArrayList<>();
        for (Cases.Partition p : c.leaderAndIsr) {
            LeaderAndIsrPartitionState state = new LeaderAndIsrPartitionState()
                    .setTopicName(p.topic())
                    .setPartitionIndex(p.index())
                    .setControllerEpoch(p.controllerEpoch())
                    .setLeader(p.leader())
                    .setLeaderEpoch(p.leaderEpoch())
                    .setIsr(p.isr())
                    .setReplicas(p.replicas())
                    .setAddingReplicas(p.adding())
                    .setRemovingReplicas(p.removing())
                    .setIsNew(p.isNew());
            Method setPartitionEpoch = method(state.getClass(), "setPartitionEpoch", int.class);
            if (setPartitionEpoch == null) setPartitionEpoch = method(state.getClass(), "setZkVersion", int.class);
            setPartitionEpoch.invoke(state, p.partitionEpoch());
            // The controller sets it from this version on; the classes refuse it below.
            if (version >= 6) method(state.getClass(), "setLeaderRecoveryState", byte.class).invoke(state, p.recovery());
            states.add(state);
        }
        List<Node> leaders = c.liveLeaders().stream()
                .map(b -> new Node(b.id(), b.internal().host(), b.internal().port())).toList();
        List<Object> arguments = new ArrayList<>(List.of(version, c.controllerId, c.controllerEpoch, c.brokerEpoch(), states));
        if (uuidClass() != null) arguments.add(topicIds(c));
        arguments.add(leaders);
        return build(LeaderAndIsrRequest.Builder.class, arguments, version);
    }

    private static AbstractRequest updateMetadata(Cases.Case c, short version) throws Exception {
        List<UpdateMetadataPartitionState> states = new ArrayList<>();
        for (Cases.Partition p : c.updateMetadata) {
            states.add(new UpdateMetadataPartitionState()
                    .setTopicName(p.topic())
                    .setPartitionIndex(p.index())
                    .setControllerEpoch(p.controllerEpoch())
                    .setLeader(p.leader())
                    .setLeaderEpoch(p.leaderEpoch())
                    .setIsr(p.isr())
                    .setZkVersion(p.partitionEpoch())
                    .setReplicas(p.replicas())
                    .setOfflineReplicas(p.offline()));
        }
        List<UpdateMetadataBroker> brokers = new ArrayList<>();
        for (Cases.Broker b : c.brokers) {
            brokers.add(new UpdateMetadataBroker().setId(b.id()).setRack(b.rack()).setEndpoints(b.endpoints().stream()
                    .map(e -> new UpdateMetadataEndpoint()
                            .setHost(e.host())
                            .setPort(e.port())
                            .setListener(e.listener())
                            .setSecurityProtocol(SecurityProtocol.forName(e.security()).id))
                    .toList()));
        }
        List<Object> arguments = new ArrayList<>(
                List.of(version, c.controllerId, c.controllerEpoch, c.brokerEpoch(), states, brokers));
        if (uuidClass() != null) arguments.add(topicIds(c));
        return build(UpdateMetadataRequest.Builder.class, arguments, version);
    }

    private static AbstractRequest stopReplica(Cases.Case c, short version, boolean delete, List<Cases.Stop> stops)
            throws Exception {
        Class<?> topicState = classOrNull("org.apache.kafka.common.message.StopReplicaRequestData$StopReplicaTopicState");
        Object partitions;
        if (topicState == null) {
            Set<TopicPartition> named = new LinkedHashSet<>();
            for (Cases.Stop s : stops) named.add(new TopicPartition(s.topic(), s.index()));
            partitions = named;
        } else {
            Map<String, List<Object>> byTopic = new LinkedHashMap<>();
            Class<?> partitionState = Class.forName(
                    "org.apache.kafka.common.message.StopReplicaRequestData$StopReplicaPartitionState");
            for (Cases.Stop s : stops) {
                Object state = partitionState.getConstructor().newInstance();
                method(partitionState, "setPartitionIndex", int.class).invoke(state, s.index());
                method(partitionState, "setLeaderEpoch", int.class).invoke(state, s.leaderEpoch());
                method(partitionState, "setDeletePartition", boolean.class).invoke(state, s.delete());
                byTopic.computeIfAbsent(s.topic(), t -> new ArrayList<>()).add(state);
            }
            List<Object> topics = new ArrayList<>();
            for (Map.Entry<String, List<Object>> entry : byTopic.entrySet()) {
                Object topic = topicState.getConstructor().newInstance();
                method(topicState, "setTopicName", String.class).invoke(topic, entry.getKey());
                method(topicState, "setPartitionStates", List.class).invoke(topic, entry.getValue());
                topics.add(topic);
            }
            partitions = topics;
        }
        return build(StopReplicaRequest.Builder.class,
                List.of(version, c.controllerId, c.controllerEpoch, c.brokerEpoch(), delete, partitions), version);
    }

    /** Without topics, which is not the same as with all of them. */
    private static AbstractRequest describeLogDirs(short version) throws Exception {
        Class<?> argument = DescribeLogDirsRequest.Builder.class.getConstructors()[0].getParameterTypes()[0];
        Object topics = argument == Set.class ? Set.of() : argument.getConstructor().newInstance();
        return build(DescribeLogDirsRequest.Builder.class, List.of(topics), version);
    }

    private static AbstractRequest build(Class<?> builder, List<Object> arguments, short version) throws Exception {
        for (var constructor : builder.getConstructors()) {
            if (constructor.getParameterCount() == arguments.size()) {
                return ((AbstractRequest.Builder<?>) constructor.newInstance(arguments.toArray())).build(version);
            }
        }
        throw new IllegalStateException("no fitting constructor of " + builder);
    }

    private static Map<String, Object> topicIds(Cases.Case c) throws Exception {
        Map<String, Object> ids = new HashMap<>();
        for (var entry : c.topicIds.entrySet()) {
            ids.put(entry.getKey(), uuidClass().getConstructor(long.class, long.class).newInstance(
                    entry.getValue().getMostSignificantBits(), entry.getValue().getLeastSignificantBits()));
        }
        return ids;
    }

    private static void print(Cases.Case c, String name, ApiKeys api, short version, AbstractRequest request)
            throws Exception {
        RequestHeader header = new RequestHeader(api, version, Integer.toString(c.controllerId), 42);
        byte[] head = new byte[0];
        ByteBuffer rest;
        Method serialize = method(AbstractRequest.class, "serialize", RequestHeader.class);
        if (serialize != null) {
            rest = (ByteBuffer) serialize.invoke(request, header);
        } else {
            Class<?> message = Class.forName("org.apache.kafka.common.protocol.Message");
            Object data = method(RequestHeader.class, "data").invoke(header);
            head = bytes((ByteBuffer) method(Class.forName("org.apache.kafka.common.protocol.MessageUtil"),
                    "toByteBuffer", message, short.class).invoke(null, data, header.headerVersion()));
            rest = (ByteBuffer) method(AbstractRequest.class, "serialize").invoke(request);
        }
        System.out.println(c.name + " " + name + " " + version + " "
                + HexFormat.of().formatHex(head) + HexFormat.of().formatHex(bytes(rest)));
    }

    private static byte[] bytes(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }

    private static Class<?> uuidClass() {
        return classOrNull("org.apache.kafka.common.Uuid");
    }

    private static Class<?> classOrNull(String name) {
        try {
            return Class.forName(name);
        } catch (ClassNotFoundException e) {
            return null;
        }
    }

    private static Method method(Class<?> owner, String name, Class<?>... parameters) {
        try {
            return owner.getMethod(name, parameters);
        } catch (NoSuchMethodException e) {
            return null;
        }
    }
}
