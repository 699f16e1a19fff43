package io.belfry.client;

import static io.belfry.client.Schedule.bytes;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.Utils;

/**
 * Writes requests and hears what became of them. Many threads may use one client. It reads the topic
 * of verdicts from its making until it is closed.
 *
 * <p>Each call returns at once. Its future has the verdict, or fails with a {@link RefusedException}
 * where that is a no, or with a {@link NoVerdictException}.
 */
public final class BelfryClient implements AutoCloseable {
    private final Options options;
    private final KafkaProducer<byte[], byte[]> producer;
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final Map<String, List<Waiting>> waiting = new ConcurrentHashMap<>();
    private final Thread reader = new Thread(this::read, "belfry-verdicts");
    private volatile RuntimeException broken;

    /** A client with Kafka's own properties, such as {@code bootstrap.servers}. */
    public BelfryClient(Map<String, Object> kafka, Options options) {
        this.options = options;
        producer =
                new KafkaProducer<>(kafka, new ByteArraySerializer(), new ByteArraySerializer());
        Map<String, Object> reading = new HashMap<>(kafka);
        reading.put(ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed");
        reading.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        consumer =
                new KafkaConsumer<>(reading, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        try {
            readFromNow();
        } catch (RuntimeException error) {
            producer.close(Duration.ZERO);
            consumer.close();
            throw error;
        }
        reader.setDaemon(true);
        reader.start();
    }

    /** Ask for an event, or change one that waits. */
    public CompletableFuture<Verdict> schedule(Schedule schedule) {
        String requestId =
                schedule.requestId == null ? UUID.randomUUID().toString() : schedule.requestId;
        return ask(
                new Request(schedule.tenant, schedule.id, requestId),
                schedule.key, schedule.payload, schedule.headers());
    }

    /** Take a schedule back: {@code TOO_LATE} where it has fired, {@code NOT_FOUND} where it never was. */
    public CompletableFuture<Verdict> cancel(String tenant, String id) {
        return act(tenant, id, "CANCEL");
    }

    /** Keep a schedule from firing until it is resumed. */
    public CompletableFuture<Verdict> pause(String tenant, String id) {
        return act(tenant, id, "PAUSE");
    }

    /** Let a schedule that was paused go on. */
    public CompletableFuture<Verdict> resume(String tenant, String id) {
        return act(tenant, id, "RESUME");
    }

    /** Fire a schedule once more, now. */
    public CompletableFuture<Verdict> trigger(String tenant, String id) {
        return act(tenant, id, "TRIGGER");
    }

    /**
     * Say that an event is done, so that what waits for it goes on: {@code UPDATED}, or {@code
     * UNCHANGED} where nothing waits for it.
     */
    public CompletableFuture<Verdict> acknowledge(String tenant, FiredEvent event) {
        Headers headers = Schedule.asking(tenant, event.id(), "ACK");
        headers.add("belfry-fire-id", bytes(event.fireId()));
        Request request = new Request(tenant, event.id(), UUID.randomUUID().toString());
        return ask(request, null, null, headers);
    }

    /** Wait for what is being written, and give the connections back. */
    @Override
    public void close() {
        producer.close();
        consumer.wakeup();
        try {
            reader.join();
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    CompletableFuture<RecordMetadata> produce(ProducerRecord<byte[], byte[]> record) {
        var written = new CompletableFuture<RecordMetadata>();
        producer.send(
                record,
                (sent, error) -> {
                    if (error == null) {
                        written.complete(sent);
                    } else {
                        written.completeExceptionally(error);
                    }
                });
        return written;
    }

    /** A request goes straight to its tenant's home, whatever its key. */
    static int home(String tenant, int partitions) {
        return Utils.toPositive(Utils.murmur2(bytes(tenant))) % partitions;
    }

    static RuntimeException unwrapped(Throwable error) {
        Throwable cause =
                error instanceof CompletionException && error.getCause() != null
                        ? error.getCause()
                        : error;
        return cause instanceof RuntimeException own ? own : new CompletionException(cause);
    }

    private CompletableFuture<Verdict> act(String tenant, String id, String action) {
        Request request = new Request(tenant, id, UUID.randomUUID().toString());
        return ask(request, null, null, Schedule.asking(tenant, id, action));
    }

    private CompletableFuture<Verdict> ask(
            Request request, byte[] key, byte[] value, Headers headers) {
        if (broken != null) {
            return CompletableFuture.failedFuture(broken);
        }
        String tenant = request.tenant();
        String topic = options.prefix() + "schedules" + (options.ownTopics() ? "." + tenant : "");
        headers.add("belfry-request-id", bytes(request.requestId()));
        byte[] secret = options.secrets().get(tenant);
        if (secret != null) {
            headers.add(Signature.HEADER, bytes(Signature.of(secret, tenant, key, value, headers)));
        }
        int partition = home(tenant, producer.partitionsFor(topic).size());
        Waiting answer = new Waiting(request);
        expect(answer);
        produce(new ProducerRecord<>(topic, partition, key, value, headers))
                .whenComplete(answer::written);
        return answer.verdict
                .orTimeout(options.timeout().toMillis(), TimeUnit.MILLISECONDS)
                // Elsewhere than in the thread that reads verdicts, which has to go on.
                .handleAsync((verdict, error) -> answered(answer, verdict, error));
    }

    private Verdict answered(Waiting answer, Verdict verdict, Throwable error) {
        forget(answer);
        if (error instanceof TimeoutException) {
            Request asked = answer.request;
            throw new NoVerdictException(asked.name(), asked.requestId(), options.timeout());
        }
        if (error != null) {
            throw unwrapped(error);
        }
        if (verdict.refused()) {
            throw new RefusedException(verdict);
        }
        return verdict;
    }

    private void expect(Waiting answer) {
        waiting.compute(
                answer.request.requestId(),
                (id, some) -> {
                    List<Waiting> all = some == null ? new ArrayList<>() : new ArrayList<>(some);
                    all.add(answer);
                    return all;
                });
    }

    private void forget(Waiting answer) {
        waiting.computeIfPresent(
                answer.request.requestId(),
                (id, some) -> {
                    List<Waiting> left = new ArrayList<>(some);
                    left.remove(answer);
                    return left.isEmpty() ? null : left;
                });
    }

    /**
     * Stand at the end of every partition before the first request is written, so that no verdict
     * can be missed.
     */
    private void readFromNow() {
        String topic = options.prefix() + "lifecycle";
        List<TopicPartition> all =
                consumer.partitionsFor(topic).stream()
                        .map(each -> new TopicPartition(topic, each.partition()))
                        .toList();
        if (all.isEmpty()) {
            throw new IllegalStateException("There is no topic " + topic + ": does a worker run?");
        }
        consumer.assign(all);
        consumer.endOffsets(all).forEach(consumer::seek);
    }

    private void read() {
        try (consumer) {
            while (true) {
                consumer.poll(Duration.ofSeconds(1)).forEach(this::hear);
            }
        } catch (WakeupException closed) {
            fail(new IllegalStateException("The client is closed."));
        } catch (RuntimeException error) {
            fail(error);
        }
    }

    private void fail(RuntimeException error) {
        broken = error;
        waiting.values().forEach(all -> all.forEach(each -> each.verdict.completeExceptionally(error)));
    }

    private void hear(ConsumerRecord<byte[], byte[]> record) {
        try {
            Verdict verdict = Verdict.parse(record.value());
            if (verdict.requestId() != null && verdict.answers()) {
                waiting.getOrDefault(verdict.requestId(), List.of()).forEach(each -> each.hear(verdict));
            }
        } catch (IllegalArgumentException error) {
            // What is no lifecycle event answers nobody.
        }
    }

    private record Request(String tenant, String id, String requestId) {
        String name() {
            return tenant + "/" + id;
        }
    }

    /** A verdict on the very record that was written, which may come before its place is known. */
    private static final class Waiting {
        private final Request request;
        private final CompletableFuture<Verdict> verdict = new CompletableFuture<>();
        private final List<Verdict> heard = new ArrayList<>();
        private RecordMetadata place;

        private Waiting(Request request) {
            this.request = request;
        }

        private synchronized void written(RecordMetadata sent, Throwable error) {
            if (error != null) {
                verdict.completeExceptionally(error);
                return;
            }
            place = sent;
            heard.forEach(this::match);
        }

        private synchronized void hear(Verdict found) {
            heard.add(found);
            if (place != null) {
                match(found);
            }
        }

        private void match(Verdict found) {
            boolean ours = found.tenant().equals(request.tenant()) && found.id().equals(request.id());
            boolean anywhere = found.sourcePartition() == null || found.sourceOffset() == null;
            if (ours
                    && (anywhere
                            || found.sourcePartition() == place.partition()
                                    && found.sourceOffset() == place.offset())) {
                verdict.complete(found);
            }
        }
    }
}
