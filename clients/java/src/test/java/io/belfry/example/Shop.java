package io.belfry.example;

import io.belfry.client.Backoff;
import io.belfry.client.BelfryClient;
import io.belfry.client.FiredEvent;
import io.belfry.client.Options;
import io.belfry.client.RefusedException;
import io.belfry.client.Retrier;
import io.belfry.client.Schedule;
import io.belfry.client.When;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A shop that uses belfry: it schedules, cancels, hears verdicts, reads what fires, and puts back
 * charges that fail.
 */
public final class Shop {
    private static final String TENANT = "java";

    private final String prefix;
    private final Map<String, Object> kafka;
    private final BelfryClient belfry;
    private final String charges;
    private final String deadLetters;

    private Shop(String prefix, Map<String, Object> kafka, BelfryClient belfry) {
        this.prefix = prefix;
        this.kafka = kafka;
        this.belfry = belfry;
        charges = prefix + "example.java.charges";
        deadLetters = charges + ".dead";
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, String> given = System.getenv();
        String prefix = given.getOrDefault("BELFRY_CLUSTER__TOPIC_PREFIX", "belfry.");
        String servers = given.getOrDefault("BELFRY_BOOTSTRAP_SERVERS", "localhost:9092");
        Map<String, Object> kafka = Map.of("bootstrap.servers", servers);
        Options options = Options.defaults().withPrefix(prefix);
        String secret = given.get("BELFRY_SECRET");
        if (secret != null) {
            options = options.withSecrets(Map.of(TENANT, secret.getBytes(StandardCharsets.UTF_8)));
        }
        try (BelfryClient belfry = new BelfryClient(kafka, options)) {
            Shop shop = new Shop(prefix, kafka, belfry);
            shop.ask();
            shop.charge();
            shop.consume();
        }
    }

    /** Schedule and cancel. Each future has what belfry answered. */
    private void ask() {
        var accepted =
                belfry.schedule(
                        Schedule.of(TENANT, "greeting/1", When.in(Duration.ofSeconds(1)))
                                .key("customer-7")
                                .payload("hello from Java")
                                .type("greeting")
                                .group("customer-7")
                                .serial())
                        .join();
        System.out.println(accepted.outcome() + " greeting/1 version " + accepted.version());

        When mondays =
                When.cron("0 9 * * MON", ZoneId.of("Europe/Paris")).except("* * 25 12 *").maxFires(52);
        Schedule report =
                Schedule.of(TENANT, "report", mondays).overlap("SKIP").reason("the weekly report");
        belfry.schedule(report).join();
        System.out.println(belfry.cancel(TENANT, "report").join().outcome() + " report");

        When inAnHour = When.at(Instant.now().plusSeconds(3600));
        belfry.schedule(Schedule.of(TENANT, "closing", inAnHour)).join();
        System.out.println(belfry.cancel(TENANT, "closing").join().outcome() + " closing");

        try {
            belfry.cancel(TENANT, "nothing").join();
        } catch (CompletionException error) {
            if (error.getCause() instanceof RefusedException refused) {
                System.out.println(refused.verdict().outcome() + " " + refused.verdict().id());
            }
        }
    }

    /** Write a charge to a topic of the shop's own. */
    private void charge() throws InterruptedException, ExecutionException {
        try (Admin admin = Admin.create(kafka)) {
            for (String topic : List.of(charges, deadLetters)) {
                try {
                    NewTopic made = new NewTopic(topic, Optional.of(1), Optional.empty());
                    admin.createTopics(List.of(made)).all().get();
                } catch (ExecutionException error) {
                    if (!(error.getCause() instanceof TopicExistsException)) {
                        throw error;
                    }
                }
            }
        }
        try (var producer =
                new KafkaProducer<>(kafka, new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>(charges, "order-1", "card 4711")).get();
        }
    }

    /**
     * Read what fires, and charges. A charge that fails comes again among the fired events, until it
     * ends as a dead letter.
     */
    private void consume() {
        Backoff backoff = new Backoff(Duration.ofMillis(200), 2, Duration.ofHours(1), 3);
        Retrier retrier = new Retrier(belfry, TENANT, backoff, deadLetters);
        Map<String, Object> reading =
                Map.of(
                        "bootstrap.servers", kafka.get("bootstrap.servers"),
                        "group.id", prefix + "example.java",
                        "auto.offset.reset", "earliest",
                        "isolation.level", "read_committed", // not the default
                        "enable.auto.commit", "false");
        Set<String> open = new HashSet<>(Set.of("greeting", "charge"));
        try (var consumer =
                new KafkaConsumer<>(reading, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(charges, prefix + "fired." + TENANT));
            while (!open.isEmpty()) {
                for (var record : consumer.poll(Duration.ofSeconds(1))) {
                    open.remove(handle(record, retrier));
                }
                consumer.commitSync();
            }
        }
        System.out.println("dead letter in " + deadLetters);
    }

    private String handle(ConsumerRecord<byte[], byte[]> record, Retrier retrier) {
        String text = new String(record.value(), StandardCharsets.UTF_8);
        var event = FiredEvent.of(record.headers());
        if (event.isPresent() && "greeting".equals(event.get().type())) {
            System.out.println(
                    "fired " + event.get().id() + ", occurrence " + event.get().occurrence() + ": " + text);
            var done = belfry.acknowledge(TENANT, event.get()).join();
            System.out.println(done.outcome() + " " + done.id());
            return "greeting";
        }
        System.out.println("try " + (Retrier.attempt(record) + 1) + " of " + text + " fails");
        boolean again = retrier.retry(record, new IllegalStateException("the bank is away")).join();
        return again ? "" : "charge";
    }
}
