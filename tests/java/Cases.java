import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/** Reads cases.txt, which describes its own format. */
final class Cases {
    record Endpoint(String listener, String security, String host, int port) {}

    record Broker(int id, long epoch, String rack, List<Endpoint> endpoints) {
        Endpoint internal() {
            return endpoints.stream().filter(e -> e.listener().equals("INTERNAL")).findFirst().orElseThrow();
        }
    }

    record Partition(
            String topic, int index, int controllerEpoch, int leader, int leaderEpoch, List<Integer> isr,
            int partitionEpoch, List<Integer> replicas, List<Integer> adding, List<Integer> removing,
            byte recovery, boolean isNew, List<Integer> offline) {}

    record Stop(String topic, int index, int leaderEpoch, boolean delete) {}

    static final class Case {
        String name;
        int controllerId;
        int controllerEpoch;
        int receiver;
        final List<Broker> brokers = new ArrayList<>();
        final Map<String, UUID> topicIds = new LinkedHashMap<>();
        final List<Partition> leaderAndIsr = new ArrayList<>();
        final List<Partition> updateMetadata = new ArrayList<>();
        final List<Stop> stops = new ArrayList<>();

        long brokerEpoch() {
            return brokers.stream().filter(b -> b.id() == receiver).findFirst().orElseThrow().epoch();
        }

        List<Broker> liveLeaders() {
            return brokers.stream()
                    .filter(b -> leaderAndIsr.stream().anyMatch(p -> p.leader() == b.id()))
                    .toList();
        }
    }

    private Cases() {}

    static List<Case> read(Path path) throws Exception {
        List<Case> cases = new ArrayList<>();
        Case current = null;
        for (String line : Files.readAllLines(path, StandardCharsets.UTF_8)) {
            if (line.isBlank() || line.startsWith("#")) continue;
            String[] f = line.split(" ");
            switch (f[0]) {
                case "case" -> {
                    current = new Case();
                    current.name = f[1];
                    cases.add(current);
                }
                case "controller" -> {
                    current.controllerId = Integer.parseInt(f[1]);
                    current.controllerEpoch = Integer.parseInt(f[2]);
                }
                case "receiver" -> current.receiver = Integer.parseInt(f[1]);
                case "broker" -> {
                    List<Endpoint> endpoints = new ArrayList<>();
                    for (int i = 4; i < f.length; i++) {
                        String[] e = f[i].split(",");
                        endpoints.add(new Endpoint(e[0], e[1], e[2], Integer.parseInt(e[3])));
                    }
                    String rack = f[3].equals("-") ? null : f[3];
                    current.brokers.add(new Broker(Integer.parseInt(f[1]), Long.parseLong(f[2]), rack, endpoints));
                }
                case "topic-id" -> current.topicIds.put(f[1], UUID.fromString(f[2]));
                case "partition" -> {
                    Partition partition = new Partition(
                            f[1], Integer.parseInt(f[2]), Integer.parseInt(f[3]), Integer.parseInt(f[4]),
                            Integer.parseInt(f[5]), numbers(f[6]), Integer.parseInt(f[7]), numbers(f[8]),
                            numbers(f[9]), numbers(f[10]), Byte.parseByte(f[11]), f[12].equals("new"), numbers(f[13]));
                    current.leaderAndIsr.add(partition);
                    current.updateMetadata.add(partition);
                }
                // As LeaderAndIsr.duringDelete of Kafka's server makes it.
                case "deleted" -> current.updateMetadata.add(new Partition(
                        f[1], Integer.parseInt(f[2]), Integer.parseInt(f[3]), -2, 0, numbers(f[4]), 0,
                        numbers(f[5]), List.of(), List.of(), (byte) 0, false, List.of()));
                case "stop" -> current.stops.add(new Stop(
                        f[1], Integer.parseInt(f[2]), Integer.parseInt(f[3]), f[4].equals("delete")));
                default -> throw new IllegalArgumentException(line);
            }
        }
        return cases;
    }

    private static List<Integer> numbers(String text) {
        List<Integer> numbers = new ArrayList<>();
        if (text.equals("-")) return numbers;
        if (text.contains("..")) {
            String[] ends = text.split("\\.\\.");
            for (int i = Integer.parseInt(ends[0]); i <= Integer.parseInt(ends[1]); i++) numbers.add(i);
            return numbers;
        }
        for (String part : text.split(",")) numbers.add(Integer.parseInt(part));
        return numbers;
    }
}
