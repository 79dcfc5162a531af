import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.admin.BrokerMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * What kafka-reassign-partitions --generate proposes for a cluster that no broker has.
 *
 * <p>The tool's own code calculates: only what it asks brokers for is read from standard input
 * instead. That is a number of brokers, a line "ID RACK" for each (or "ID"), then a line "TOPIC
 * PARTITION ID,ID,..." for each partition. Standard output gets the seconds of processor time of the
 * calculation, then a line of the latter form for each partition of the proposal.
 */
public final class GenerateAssignment {
    private static final String TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand";

    public static void main(String[] arguments) throws Exception {
        List<BrokerMetadata> brokers = new ArrayList<>();
        Map<TopicPartition, List<Integer>> current = new HashMap<>();
        read(brokers, current);
        Method calculate =
                Class.forName(TOOL).getDeclaredMethod("calculateAssignment", Map.class, List.class);
        calculate.setAccessible(true);
        long before = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
        @SuppressWarnings("unchecked")
        Map<TopicPartition, List<Integer>> proposed =
                (Map<TopicPartition, List<Integer>>) calculate.invoke(null, current, brokers);
        long taken = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - before;
        print(taken / 1e9, proposed);
    }

    private static void read(
            List<BrokerMetadata> brokers, Map<TopicPartition, List<Integer>> current)
            throws IOException {
        BufferedReader lines =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        int count = Integer.parseInt(lines.readLine());
        for (int i = 0; i < count; i++) {
            String[] words = lines.readLine().split(" ");
            Optional<String> rack = words.length > 1 ? Optional.of(words[1]) : Optional.empty();
            brokers.add(new BrokerMetadata(Integer.parseInt(words[0]), rack));
        }
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            List<Integer> replicas = new ArrayList<>();
            for (String id : words[2].split(",")) {
                replicas.add(Integer.valueOf(id));
            }
            current.put(new TopicPartition(words[0], Integer.parseInt(words[1])), replicas);
        }
    }

    private static void print(double seconds, Map<TopicPartition, List<Integer>> proposed) {
        StringBuilder text = new StringBuilder().append(seconds).append('\n');
        proposed.forEach((tp, replicas) -> {
            text.append(tp.topic()).append(' ').append(tp.partition()).append(' ');
            for (int i = 0; i < replicas.size(); i++) {
                text.append(i == 0 ? "" : ",").append(replicas.get(i));
            }
            text.append('\n');
        });
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        out.print(text);
        out.flush();
    }
}
