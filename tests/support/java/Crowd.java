import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Many members of one group in one process, each in a thread of its own, until it is killed. Says what they get and
 * give as VerifiableConsumer does, and which of them it was. Arguments: bootstrap, topic (and group), group.protocol,
 * session.timeout.ms (for classic), how many.
 */
public final class Crowd {
    public static void main(String[] arguments) {
        for (int number = 0; number < Integer.parseInt(arguments[4]); number++) {
            int member = number;
            new Thread(() -> poll(member, arguments)).start();
        }
    }

    private static void poll(int member, String[] arguments) {
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings(arguments), bytes, bytes)) {
            consumer.subscribe(List.of(arguments[1]), new Listener(member));
            while (true) {
                consumer.poll(Duration.ofMillis(100));
            }
        }
    }

    private static Properties settings(String[] arguments) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[1]);
        settings.put("group.protocol", arguments[2]);
        settings.put("auto.offset.reset", "earliest");
        if (arguments[2].equals("classic")) {
            settings.put("session.timeout.ms", arguments[3]);
            settings.put("heartbeat.interval.ms", "500");
        }
        return settings;
    }

    private record Listener(int member) implements ConsumerRebalanceListener {
        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            report("partitions_assigned", partitions);
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            report("partitions_revoked", partitions);
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            report("partitions_lost", partitions);
        }

        private void report(String name, Collection<TopicPartition> partitions) {
            String places = partitions.stream()
                .map(place -> "{\"partition\": " + place.partition() + "}").collect(Collectors.joining(", "));
            System.out.println(
                "{\"name\": \"" + name + "\", \"member\": " + member + ", \"partitions\": [" + places + "]}");
        }
    }
}
