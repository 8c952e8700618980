import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Members of a share group, each in a thread of its own, until standard input ends. In explicit mode the value of a
 * record begins with what becomes of it: accept, reject, release (at first), always (released), hold (nothing more is
 * done). Prints a line of JSON for every record that is got, and for every one whose acknowledgement was answered.
 * Arguments: bootstrap, group, topic, members, implicit or explicit, max.poll.records.
 */
public final class Sharer {
    public static void main(String[] arguments) throws Exception {
        EndOfInput.watch();
        List<Thread> members = new ArrayList<>();
        for (int number = 0; number < Integer.parseInt(arguments[3]); number++) {
            int member = number;
            members.add(new Thread(() -> share(member, arguments)));
        }
        for (Thread member : members) {
            member.start();
        }
        for (Thread member : members) {
            member.join();
        }
    }

    private static void share(int member, String[] arguments) {
        boolean explicit = arguments[4].equals("explicit");
        StringDeserializer strings = new StringDeserializer();
        try (KafkaShareConsumer<String, String> consumer =
                new KafkaShareConsumer<>(settings(arguments), strings, strings)) {
            consumer.subscribe(List.of(arguments[2]));
            while (!EndOfInput.wasSeen()) {
                List<ConsumerRecord<String, String>> records = new ArrayList<>();
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    report("got", member, record, ", \"count\": " + record.deliveryCount().orElse((short) -1));
                    records.add(record);
                }
                if (records.stream().anyMatch(record -> explicit && record.value().startsWith("hold"))) {
                    waitForTheEnd();
                    return;
                }
                if (explicit) {
                    records.forEach(record -> consumer.acknowledge(record, verdict(record)));
                }
                if (!records.isEmpty()) {
                    tellOutcome(member, records, consumer.commitSync());
                }
            }
        }
    }

    private static AcknowledgeType verdict(ConsumerRecord<String, String> record) {
        String value = record.value();
        if (value.startsWith("reject")) {
            return AcknowledgeType.REJECT;
        }
        boolean first = record.deliveryCount().orElse((short) 1) == 1;
        boolean again = value.startsWith("always") || value.startsWith("release") && first;
        return again ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT;
    }

    private static void tellOutcome(int member, List<ConsumerRecord<String, String>> records,
                                    Map<TopicIdPartition, Optional<KafkaException>> outcome) {
        for (ConsumerRecord<String, String> record : records) {
            Optional<KafkaException> problem = outcome.entrySet().stream()
                .filter(entry -> entry.getKey().partition() == record.partition())
                .map(Map.Entry::getValue).findFirst().orElse(Optional.empty());
            if (problem.isPresent()) {
                report("failed", member, record, ", \"error\": \"" + problem.get().getClass().getSimpleName() + "\"");
            } else {
                report("acknowledged", member, record, "");
            }
        }
    }

    private static void waitForTheEnd() {
        while (!EndOfInput.wasSeen()) {
            try {
                Thread.sleep(50);
            } catch (InterruptedException stopped) {
                return;
            }
        }
    }

    private static synchronized void report(String name, int member, ConsumerRecord<String, String> record, String more) {
        System.out.println("{\"name\": \"" + name + "\", \"member\": " + member + ", \"value\": \"" + record.value()
            + "\", \"partition\": " + record.partition() + ", \"offset\": " + record.offset() + more + "}");
    }

    private static Properties settings(String[] arguments) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[1]);
        settings.put("share.acknowledgement.mode", arguments[4]);
        settings.put("max.poll.records", arguments[5]);
        settings.put("reconnect.backoff.max.ms", "200");
        settings.put("retry.backoff.max.ms", "200");
        return settings;
    }
}
