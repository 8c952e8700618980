import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.OutOfOrderSequenceException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Consume, transform, produce: each poll becomes a transaction with its offsets, until standard input ends. Some are
 * aborted on purpose and done again. Writes what `support.copy_history` reads; prints `begin|commit|abort ATTEMPT` as it
 * happens. Ends with code 3 when its producer is of no use any more. Arguments: bootstrap, source, target, partition of
 * the totals, group, transactional id, name of this life, transaction timeout in ms, protocol of the group.
 */
public final class TransactionalCopier {
    private static final int GAVE_UP = 3;
    private static final int COMMIT_TRIES = 10;
    private static final int ONE_ABORT_IN = 5;

    private final KafkaConsumer<String, String> consumer;
    private final KafkaProducer<String, String> producer;
    private final String target;
    private final int totals;
    private final Random chance = new Random();

    private TransactionalCopier(String[] arguments) {
        consumer = new KafkaConsumer<>(consumerSettings(arguments), new StringDeserializer(), new StringDeserializer());
        producer = new KafkaProducer<>(producerSettings(arguments), new StringSerializer(), new StringSerializer());
        target = arguments[2];
        totals = Integer.parseInt(arguments[3]);
    }

    public static void main(String[] arguments) {
        EndOfInput.watch();
        TransactionalCopier copier = new TransactionalCopier(arguments);
        try {
            copier.producer.initTransactions();
            copier.consumer.subscribe(List.of(arguments[1]));
            for (int number = 0; !EndOfInput.wasSeen(); number++) {
                ConsumerRecords<String, String> records = copier.consumer.poll(Duration.ofMillis(200));
                if (!records.isEmpty()) {
                    copier.copy(records, arguments[6] + "-" + number);
                }
            }
        } catch (KafkaException failure) {
            System.out.println("gave-up " + failure.toString().replace('\n', ' '));
            System.exit(GAVE_UP);
        }
        copier.consumer.close();
        copier.producer.close();
    }

    private void copy(ConsumerRecords<String, String> records, String attempt) {
        report("begin", attempt);
        try {
            producer.beginTransaction();
            for (ConsumerRecord<String, String> record : records) {
                String value = attempt + " copy " + record.offset() + " " + record.value();
                producer.send(new ProducerRecord<>(target, record.partition(), null, value));
            }
            producer.send(new ProducerRecord<>(target, totals, null, attempt + " total " + records.count()));
            if (chance.nextInt(ONE_ABORT_IN) == 0) {
                producer.flush();
                giveUp(records, attempt);
                return;
            }
            producer.sendOffsetsToTransaction(endsOf(records), consumer.groupMetadata());
            commit();
            report("commit", attempt);
        } catch (ProducerFencedException | InvalidProducerEpochException | FencedInstanceIdException
                | OutOfOrderSequenceException | UnsupportedVersionException | AuthorizationException | TimeoutException fatal) {
            throw fatal;
        } catch (KafkaException abortable) {
            System.out.println("error " + abortable.toString().replace('\n', ' '));
            giveUp(records, attempt);
        }
    }

    /** The same call may be made again after a timeout, and must be: nobody knows how the first one ended. */
    private void commit() {
        for (int tries = 1; ; tries++) {
            try {
                producer.commitTransaction();
                return;
            } catch (TimeoutException late) {
                if (tries == COMMIT_TRIES) {
                    throw late;
                }
            }
        }
    }

    private void giveUp(ConsumerRecords<String, String> records, String attempt) {
        producer.abortTransaction();
        report("abort", attempt);
        for (TopicPartition partition : records.partitions()) {
            try {
                consumer.seek(partition, records.records(partition).get(0).offset());
            } catch (IllegalStateException lost) {
                // Another member has it, or will have it: the consumer's own thread may take it away at any time.
                System.out.println("error " + lost.toString().replace('\n', ' '));
            }
        }
    }

    private static Map<TopicPartition, OffsetAndMetadata> endsOf(ConsumerRecords<String, String> records) {
        Map<TopicPartition, OffsetAndMetadata> ends = new HashMap<>();
        for (ConsumerRecord<String, String> record : records) {
            ends.put(new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
        }
        return ends;
    }

    private static void report(String what, String attempt) {
        System.out.println(what + " " + attempt);
        System.out.flush();
    }

    private static Properties consumerSettings(String[] arguments) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[4]);
        settings.put("group.protocol", arguments[8]);
        settings.put("isolation.level", "read_committed");
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("max.poll.records", "60");
        settings.put("reconnect.backoff.max.ms", "200");
        settings.put("request.timeout.ms", "5000");
        if (arguments[8].equals("classic")) {
            settings.put("session.timeout.ms", "10000");
            settings.put("heartbeat.interval.ms", "1000");
        }
        return settings;
    }

    private static Properties producerSettings(String[] arguments) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("transactional.id", arguments[5]);
        settings.put("transaction.timeout.ms", arguments[7]);
        settings.put("linger.ms", "2");
        settings.put("reconnect.backoff.max.ms", "200");
        settings.put("request.timeout.ms", "5000");
        settings.put("delivery.timeout.ms", "30000");
        settings.put("max.block.ms", "30000");
        return settings;
    }
}
