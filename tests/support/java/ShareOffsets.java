import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.common.TopicPartition;

/**
 * Lets a share group begin elsewhere, which no command-line tool of Kafka 4.1 does yet, and prints `PARTITION OFFSET` of
 * all partitions it has then. Arguments: bootstrap, group, topic, partition, offset.
 */
public final class ShareOffsets {
    public static void main(String[] arguments) throws Exception {
        String group = arguments[1];
        TopicPartition partition = new TopicPartition(arguments[2], Integer.parseInt(arguments[3]));
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        try (Admin admin = Admin.create(settings)) {
            admin.alterShareGroupOffsets(group, Map.of(partition, Long.parseLong(arguments[4]))).all().get();
            Map<String, ListShareGroupOffsetsSpec> all = Map.of(group, new ListShareGroupOffsetsSpec());
            String shown = admin.listShareGroupOffsets(all).partitionsToOffsetAndMetadata(group).get().entrySet().stream()
                .map(entry -> entry.getKey().partition() + " " + (entry.getValue() == null ? "-" : entry.getValue().offset()))
                .sorted().collect(Collectors.joining("\n"));
            System.out.println(shown);
        }
    }
}
