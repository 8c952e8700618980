/*
 * Writes the golden files of this folder: what a genuine Apache Kafka 4.1.1 broker answers about its settings.
 *
 *   1. Put the jars of org.apache.kafka:kafka_2.13:4.1.1 and :kafka-tools:4.1.1 (with dependencies) into lib/.
 *   2. Format and start a broker with the `server.properties` beside this file (free ports, an empty log.dirs):
 *        java -cp 'lib/*' kafka.tools.StorageTool format --standalone -t MkU3OEVBNTcwNTJENDM2Qk -c server.properties
 *        java -cp 'lib/*' kafka.Kafka server.properties
 *   3. java -cp 'lib/*' Capture.java 127.0.0.1:PORT OUTPUT_FOLDER
 *
 * The files here were then put into one row a line, with the ports and the directory of that server.properties.
 *
 * definitions.json: every setting as declared by Kafka. described.json: DescribeConfigs answers in named situations.
 * refused.json: what Kafka says to bad changes.
 */

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import java.io.File;
import java.util.*;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.storage.internals.log.LogConfig;

public class Capture {
    static final ObjectMapper JSON = new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);
    static final ConfigResource TOPIC = new ConfigResource(ConfigResource.Type.TOPIC, "plain");
    static final ConfigResource BROKER = new ConfigResource(ConfigResource.Type.BROKER, "1");
    static final ConfigResource FLEET = new ConfigResource(ConfigResource.Type.BROKER, "");
    static Admin admin;

    public static void main(String[] arguments) throws Exception {
        JSON.writeValue(new File(arguments[1], "definitions.json"), definitions());
        admin = Admin.create(Map.of("bootstrap.servers", arguments[0]));
        admin.createTopics(List.of(new NewTopic("plain", 1, (short) 1))).all().get();
        JSON.writeValue(new File(arguments[1], "described.json"), described());
        JSON.writeValue(new File(arguments[1], "refused.json"), refused());
        admin.close();
    }

    static Object definitions() throws Exception {
        Class<?> dynamic = Class.forName("kafka.server.DynamicBrokerConfig$");
        var modes = dynamic.getDeclaredMethod("dynamicConfigUpdateModes");
        modes.setAccessible(true);
        Map<String, Object> synonyms = new TreeMap<>();
        ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.forEach(
            (name, list) -> synonyms.put(name, list.stream().map(s -> s.name()).toList()));
        Map<String, Object> all = new LinkedHashMap<>();
        all.put("broker", keys(AbstractKafkaConfig.CONFIG_DEF));
        all.put("topic", keys(LogConfig.configDefCopy()));
        all.put("synonyms", synonyms);
        all.put("modes", new TreeMap<>((Map<?, ?>) modes.invoke(dynamic.getField("MODULE$").get(null))));
        return all;
    }

    static Object keys(ConfigDef definition) {
        Map<String, Object> all = new TreeMap<>();
        definition.configKeys().forEach((name, key) -> {
            Map<String, Object> row = new LinkedHashMap<>();
            row.put("type", key.type.toString());
            row.put("default", key.hasDefault() ? ConfigDef.convertToString(key.defaultValue, key.type) : null);
            row.put("valid", key.validator == null ? null : key.validator.toString());
            row.put("importance", key.importance.toString());
            row.put("internal", key.internalConfig);
            all.put(name, row);
        });
        return all;
    }

    static Object described() throws Exception {
        Map<String, Object> all = new LinkedHashMap<>();
        all.put("topic: nothing changed", describe(TOPIC));
        all.put("broker: nothing changed", describe(BROKER));
        alter(TOPIC, "retention.ms", "5000", "cleanup.policy", "compact,delete", "min.cleanable.dirty.ratio", "0.25");
        all.put("topic: override", describe(TOPIC));
        alter(FLEET, "log.retention.ms", "7000", "log.cleaner.threads", "2", "message.max.bytes", "2000000",
            "compression.type", "zstd");
        all.put("topic: override, fleet", describe(TOPIC));
        all.put("broker: fleet", describe(BROKER));
        all.put("default: fleet", describe(FLEET));
        alter(BROKER, "log.retention.ms", "8000", "log.cleaner.io.max.bytes.per.second", "1000.5");
        all.put("topic: override, fleet, broker", describe(TOPIC));
        all.put("broker: fleet, broker", describe(BROKER));
        return all;
    }

    static Object describe(ConfigResource resource) throws Exception {
        Thread.sleep(1500); // a change reaches the broker a moment after it is answered
        var options = new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(false);
        Config config = admin.describeConfigs(List.of(resource), options).all().get().get(resource);
        Map<String, Object> all = new TreeMap<>();
        for (ConfigEntry entry : config.entries()) {
            Map<String, Object> row = new LinkedHashMap<>();
            row.put("value", entry.value());
            row.put("source", entry.source().toString());
            row.put("read_only", entry.isReadOnly());
            row.put("sensitive", entry.isSensitive());
            row.put("type", entry.type().toString());
            row.put("synonyms", entry.synonyms().stream()
                .map(s -> Arrays.asList(s.name(), s.value(), s.source().toString())).toList());
            all.put(entry.name(), row);
        }
        return all;
    }

    static void alter(ConfigResource resource, String... pairs) throws Exception {
        List<AlterConfigOp> changes = new ArrayList<>();
        for (int i = 0; i < pairs.length; i += 2) {
            changes.add(new AlterConfigOp(new ConfigEntry(pairs[i], pairs[i + 1]), AlterConfigOp.OpType.SET));
        }
        admin.incrementalAlterConfigs(Map.of(resource, changes)).all().get();
    }

    static Object refused() throws Exception {
        String[][] topic = {
            {"retention.ms", "-5"}, {"retention.ms", "soon"}, {"retention.ms", ""}, {"foo", "1"}, {"cleanup.policy", "shred"},
            {"cleanup.policy", ""}, {"cleanup.policy", "delete,delete"}, {"cleanup.policy", " compact , delete "},
            {"compression.type", "brotli"}, {"compression.gzip.level", "0"}, {"compression.gzip.level", "10"},
            {"compression.lz4.level", "18"}, {"compression.zstd.level", "23"}, {"min.cleanable.dirty.ratio", "1.5"},
            {"min.cleanable.dirty.ratio", "x"}, {"preallocate", "maybe"}, {"preallocate", "TRUE"},
            {"min.insync.replicas", "0"}, {"max.message.bytes", "3000000000"}, {"segment.bytes", "100"},
            {"message.timestamp.type", "createtime"}, {"leader.replication.throttled.replicas", "1"},
            {"leader.replication.throttled.replicas", "*"}, {"leader.replication.throttled.replicas", "0:1,1:2"},
            {"leader.replication.throttled.replicas", "a:b"}, {"retention.ms", " 5000 "}, {"retention.ms", "+5000"},
            {"retention.ms", "5_000"}, {"retention.ms", "99999999999999999999"}, {"remote.storage.enable", "true"},
            {"message.format.version", "3.0"}, {"max.compaction.lag.ms", "5"}, {"log.retention.ms", "5000"},
            {"local.retention.ms", "999999999999"}, {"min.cleanable.dirty.ratio", "NaN"},
            {"min.cleanable.dirty.ratio", "1e-1"}, {"flush.messages", "0"}, {"internal.segment.bytes", "1000"},
        };
        String[][] broker = {
            {"log.retention.ms", "-5"}, {"log.retention.ms", "x"}, {"log.retention.ms", "0"}, {"node.id", "5"},
            {"log.retention.hours", "5"}, {"foo", "1"}, {"foo.bar", "1"}, {"compression.type", "brotli"}, {"log.cleaner.threads", "-1"},
            {"log.cleaner.threads", "99"}, {"ssl.keystore.location", "/x"}, {"listener.name.plaintext.ssl.keystore.type", "JKS"},
            {"num.io.threads", "0"}, {"num.io.threads", "1000"}, {"process.roles", "broker"}, {"max.connections", "-1"},
            {"max.connections.per.ip.overrides", "oops"}, {"log.dirs", "/x"}, {"unclean.leader.election.enable", "perhaps"},
            {"leader.replication.throttled.rate", "1000"}, {"leader.replication.throttled.rate", "-1"},
            {"background.threads", "50"}, {"log.segment.bytes", "10"}, {"listeners", "oops"},
            {"advertised.listeners", "PLAINTEXT://127.0.0.1:1"}, {"log.roll.hours", "3"}, {"min.insync.replicas", "0"},
        };
        List<Object> all = new ArrayList<>();
        for (String[] pair : topic) all.add(attempt("topic", TOPIC, pair));
        for (String[] pair : broker) all.add(attempt("broker", BROKER, pair));
        for (String[] pair : broker) all.add(attempt("default", FLEET, pair));
        return all;
    }

    static Object attempt(String scope, ConfigResource resource, String[] pair) throws Exception {
        Map<String, Object> row = new LinkedHashMap<>();
        row.put("scope", scope);
        row.put("name", pair[0]);
        row.put("value", pair[1]);
        var change = new AlterConfigOp(new ConfigEntry(pair[0], pair[1]), AlterConfigOp.OpType.SET);
        try {
            var options = new AlterConfigsOptions().validateOnly(true);
            admin.incrementalAlterConfigs(Map.of(resource, List.of(change)), options).all().get();
            row.put("error", null);
            row.put("message", null);
        } catch (ExecutionException refusal) {
            row.put("error", refusal.getCause().getClass().getSimpleName());
            row.put("message", refusal.getCause().getMessage());
        }
        return row;
    }
}
