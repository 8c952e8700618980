import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Calls of Java's clients that no command-line tool makes; prints one `name=value` line each. Arguments: bootstrap, topic. */
public final class AdminCalls {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        TopicPartition partition = new TopicPartition(arguments[1], 0);
        produceFive(settings, partition);
        try (Admin admin = Admin.create(settings)) {
            describeTopic(admin, partition.topic());
            describeProducer(admin, partition);
            listResources(admin);
            listPositions(admin, partition);
            describeAbsent(admin);
        }
        consumeWithEpoch(settings, partition);
    }

    /** With idempotence, Java's default. */
    static void produceFive(Properties settings, TopicPartition partition) throws Exception {
        StringSerializer strings = new StringSerializer();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings, strings, strings)) {
            for (int i = 0; i < 5; i++) {
                producer.send(new ProducerRecord<>(partition.topic(), partition.partition(), "k", "v" + i)).get();
            }
        }
    }

    static void describeTopic(Admin admin, String topic) throws Exception {
        TopicDescription description = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
        String partitions = description.partitions().stream()
            .map(p -> p.partition() + ":" + p.leader().id() + ":" + p.isr().stream().map(n -> n.id()).collect(Collectors.toList()))
            .collect(Collectors.joining(" "));
        System.out.println("described=" + topic + " " + partitions);
    }

    static void describeProducer(Admin admin, TopicPartition partition) throws Exception {
        List<ProducerState> states = admin.describeProducers(List.of(partition)).all().get().get(partition).activeProducers();
        ProducerState state = states.get(0);
        System.out.println("producer=" + state.producerId() + " " + state.producerEpoch() + " " + state.lastSequence());
    }

    static void listResources(Admin admin) throws Exception {
        String resources = admin.listConfigResources().all().get().stream()
            .map((ConfigResource r) -> r.type() + " " + r.name()).sorted().collect(Collectors.joining(", "));
        System.out.println("resources=" + resources);
    }

    static void listPositions(Admin admin, TopicPartition partition) throws Exception {
        ListOffsetsResultInfo first = admin.listOffsets(Map.of(partition, OffsetSpec.earliest())).partitionResult(partition).get();
        ListOffsetsResultInfo last = admin.listOffsets(Map.of(partition, OffsetSpec.latest())).partitionResult(partition).get();
        System.out.println("positions=earliest " + first.offset() + " latest " + last.offset() + " epoch " + last.leaderEpoch().get());
    }

    static void describeAbsent(Admin admin) throws Exception {
        try {
            admin.describeTopics(List.of("absent-topic")).allTopicNames().get();
        } catch (ExecutionException failed) {
            System.out.println("partitions-of-absent=" + failed.getCause().getClass().getSimpleName());
        }
    }

    /** Seeking with an epoch makes the consumer validate its position by OffsetForLeaderEpoch. */
    static void consumeWithEpoch(Properties settings, TopicPartition partition) {
        StringDeserializer strings = new StringDeserializer();
        List<String> values = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings, strings, strings)) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, new OffsetAndMetadata(0, java.util.Optional.of(0), ""));
            long deadline = System.currentTimeMillis() + 30_000;
            while (values.size() < 5 && System.currentTimeMillis() < deadline) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    values.add(record.value());
                }
            }
        }
        System.out.println("consumed=" + String.join(" ", values));
    }
}
