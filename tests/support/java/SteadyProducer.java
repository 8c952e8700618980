import java.io.IOException;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Sends numbered values until standard input ends, then waits for what is under way.
 * Prints `ack NUMBER PARTITION OFFSET` or `fail NUMBER PARTITION REASON` for each. Arguments: bootstrap, topic, partitions,
 * records per second, name (how values begin), and, to log in, a file of properties.
 */
public final class SteadyProducer {
    public static void main(String[] arguments) throws Exception {
        String topic = arguments[1];
        String name = arguments[4];
        int partitions = Integer.parseInt(arguments[2]);
        int perTenMilliseconds = Math.max(1, Integer.parseInt(arguments[3]) / 100);
        EndOfInput.watch();
        StringSerializer strings = new StringSerializer();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings(arguments), strings, strings)) {
            for (long number = 0; !EndOfInput.wasSeen(); ) {
                for (int i = 0; i < perTenMilliseconds; i++) {
                    send(producer, topic, name, number, (int) (number % partitions));
                    number++;
                }
                Thread.sleep(10);
            }
        }
        System.out.flush();
    }

    private static Properties settings(String[] arguments) throws IOException {
        Properties settings = Login.settings(arguments, 5);
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("acks", "all");
        settings.put("enable.idempotence", "true");
        settings.put("linger.ms", "2");
        settings.put("reconnect.backoff.max.ms", "200");
        settings.put("request.timeout.ms", "3000");
        settings.put("delivery.timeout.ms", "120000");
        settings.put("max.block.ms", "120000");
        return settings;
    }

    private static void send(KafkaProducer<String, String> producer, String topic, String name, long number,
            int partition) {
        String value = name + "-" + number + ".".repeat(200);
        producer.send(new ProducerRecord<>(topic, partition, null, value), (metadata, failure) -> {
            if (failure == null) {
                System.out.println("ack " + number + " " + partition + " " + metadata.offset());
            } else {
                System.out.println("fail " + number + " " + partition + " " + failure);
            }
        });
    }
}
