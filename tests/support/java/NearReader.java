import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads partition 0 from the beginning and prints, as soon as it has one, `NODE RECORDS`: the replica that the leader sent it
 * to, and how many records it has read by then and in the polls after. Arguments: bootstrap, topic, rack, records to read.
 */
public final class NearReader {
    public static void main(String[] arguments) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("client.rack", arguments[2]);
        settings.put("enable.auto.commit", "false");
        settings.put("max.partition.fetch.bytes", "4096");
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        int wanted = Integer.parseInt(arguments[3]);
        int records = 0;
        double node = -1;
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
            TopicPartition partition = new TopicPartition(arguments[1], 0);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            while (records < wanted) {
                records += consumer.poll(Duration.ofMillis(200)).count();
                node = Math.max(node, preferred(consumer));
            }
        }
        System.out.println((int) node + " " + records);
    }

    private static double preferred(KafkaConsumer<byte[], byte[]> consumer) {
        return consumer.metrics().values().stream()
            .filter(metric -> metric.metricName().name().equals("preferred-read-replica"))
            .mapToDouble(metric -> ((Number) metric.metricValue()).doubleValue())
            .max().orElse(-1);
    }
}
