import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Reads all partitions from the beginning until standard input ends, by assign().
 * Prints `PARTITION OFFSET VALUE` for each record; a value ends before its first dot. Arguments: bootstrap, topic,
 * partitions, and, to log in, a file of properties.
 */
public final class SteadyConsumer {
    public static void main(String[] arguments) throws Exception {
        EndOfInput.watch();
        List<TopicPartition> partitions = new ArrayList<>();
        for (int index = 0; index < Integer.parseInt(arguments[2]); index++) {
            partitions.add(new TopicPartition(arguments[1], index));
        }
        StringDeserializer strings = new StringDeserializer();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings(arguments), strings, strings)) {
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            while (!EndOfInput.wasSeen()) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100))) {
                    String value = record.value().substring(0, record.value().indexOf('.'));
                    System.out.println(record.partition() + " " + record.offset() + " " + value);
                }
                System.out.flush();
            }
        }
    }

    private static Properties settings(String[] arguments) throws IOException {
        Properties settings = Login.settings(arguments, 3);
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "none");
        settings.put("reconnect.backoff.max.ms", "200");
        settings.put("request.timeout.ms", "3000");
        settings.put("metadata.max.age.ms", "5000");
        return settings;
    }
}
