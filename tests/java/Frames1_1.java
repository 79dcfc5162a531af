import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.DescribeLogDirsRequest;
import org.apache.kafka.common.requests.LeaderAndIsrRequest;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.StopReplicaRequest;
import org.apache.kafka.common.requests.UpdateMetadataRequest;
import org.apache.kafka.common.security.auth.SecurityProtocol;

/** Golden frames by the classes of Kafka 1.1. Arguments: cases file. */
final class Frames1_1 {
    public static void main(String[] args) throws Exception {
        for (Cases.Case c : Cases.read(Path.of(args[0]))) {
            for (short v = 0; v <= 1; v++) print(c, "leader_and_isr", v, leaderAndIsr(c, v));
            print(c, "update_metadata", (short) 4, updateMetadata(c));
            for (boolean delete : new boolean[] {true, false}) {
                Set<TopicPartition> partitions = new LinkedHashSet<>();
                for (Cases.Stop s : c.stops) {
                    if (s.delete() == delete) partitions.add(new TopicPartition(s.topic(), s.index()));
                }
                if (partitions.isEmpty()) continue;
                print(c, delete ? "stop_replica_delete" : "stop_replica_keep", (short) 0,
                        new StopReplicaRequest.Builder(c.controllerId, c.controllerEpoch, delete, partitions)
                                .build((short) 0));
            }
            print(c, "describe_log_dirs", (short) 0, new DescribeLogDirsRequest.Builder(Set.of()).build((short) 0));
        }
    }

    private static AbstractRequest leaderAndIsr(Cases.Case c, short version) {
        Map<TopicPartition, LeaderAndIsrRequest.PartitionState> states = new LinkedHashMap<>();
        for (Cases.Partition p : c.leaderAndIsr) {
            states.put(new TopicPartition(p.topic(), p.index()), new LeaderAndIsrRequest.PartitionState(
                    p.controllerEpoch(), p.leader(), p.leaderEpoch(), p.isr(), p.partitionEpoch(),
                    p.replicas(), p.isNew()));
        }
        Set<Node> leaders = new LinkedHashSet<>();
        for (Cases.Broker b : c.liveLeaders()) {
            leaders.add(new Node(b.id(), b.internal().host(), b.internal().port()));
        }
        return new LeaderAndIsrRequest.Builder(version, c.controllerId, c.controllerEpoch, states, leaders)
                .build(version);
    }

    private static AbstractRequest updateMetadata(Cases.Case c) {
        Map<TopicPartition, UpdateMetadataRequest.PartitionState> states = new LinkedHashMap<>();
        for (Cases.Partition p : c.updateMetadata) {
            states.put(new TopicPartition(p.topic(), p.index()), new UpdateMetadataRequest.PartitionState(
                    p.controllerEpoch(), p.leader(), p.leaderEpoch(), p.isr(), p.partitionEpoch(),
                    p.replicas(), p.offline()));
        }
        Set<UpdateMetadataRequest.Broker> brokers = new LinkedHashSet<>();
        for (Cases.Broker b : c.brokers) {
            brokers.add(new UpdateMetadataRequest.Broker(b.id(), b.endpoints().stream()
                    .map(e -> new UpdateMetadataRequest.EndPoint(
                            e.host(), e.port(), SecurityProtocol.forName(e.security()),
                            new ListenerName(e.listener())))
                    .toList(), b.rack()));
        }
        short version = 4;
        return new UpdateMetadataRequest.Builder(version, c.controllerId, c.controllerEpoch, states, brokers)
                .build(version);
    }

    private static void print(Cases.Case c, String name, short version, AbstractRequest request) {
        ApiKeys api = name.equals("leader_and_isr") ? ApiKeys.LEADER_AND_ISR
                : name.equals("update_metadata") ? ApiKeys.UPDATE_METADATA
                : name.equals("describe_log_dirs") ? ApiKeys.DESCRIBE_LOG_DIRS : ApiKeys.STOP_REPLICA;
        ByteBuffer frame = request.serialize(
                new RequestHeader(api, version, Integer.toString(c.controllerId), 42));
        byte[] bytes = new byte[frame.remaining()];
        frame.get(bytes);
        System.out.println(c.name + " " + name + " " + version + " " + HexFormat.of().formatHex(bytes));
    }
}
