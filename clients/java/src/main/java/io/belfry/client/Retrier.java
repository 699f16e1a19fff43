package io.belfry.client;

import static io.belfry.client.FiredEvent.last;
import static io.belfry.client.Schedule.bytes;

import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;

/**
 * Puts back what a consumer could not handle, from any topic.
 *
 * @param tenant on whose topic of fired events records come again
 * @param deadLetters the topic for what has failed in every try
 */
public record Retrier(BelfryClient client, String tenant, Backoff backoff, String deadLetters) {
    static final String ATTEMPT = "retry-attempt";

    /** How often a record has been retried: 0 for one that comes for the first time. */
    public static int attempt(ConsumerRecord<?, ?> record) {
        String text = last(record.headers(), ATTEMPT);
        return text != null && text.matches("\\d{1,9}") ? Integer.parseInt(text) : 0;
    }

    /**
     * Have a record come again after a wait, as a schedule with the record's own key, value and
     * headers. The future has true, or false where no try was left and the record is a dead letter
     * now. After it the record counts as handled, so commit its offset. To call this twice for one
     * record makes one retry, since its id is made of the fire id, or of the record's place in its
     * topic. An event that a redrive has sent again is tried again as well.
     */
    public CompletableFuture<Boolean> retry(ConsumerRecord<byte[], byte[]> record, Throwable cause) {
        var delay = backoff.delay(attempt(record) + 1);
        if (delay.isEmpty()) {
            return client.produce(deadLetter(record, cause)).thenApply(sent -> false);
        }
        return client.schedule(again(record, delay.get()))
                .handle(
                        (verdict, error) -> {
                            if (error == null || putBackBefore(error)) {
                                return true;
                            }
                            throw BelfryClient.unwrapped(error);
                        });
    }

    /** Whether it was put back a moment ago, with another backoff. */
    private static boolean putBackBefore(Throwable error) {
        return BelfryClient.unwrapped(error) instanceof RefusedException refused
                && "request_id_reused".equals(refused.verdict().code());
    }

    Schedule again(ConsumerRecord<byte[], byte[]> record, Duration delay) {
        var event = FiredEvent.of(record.headers());
        String id = "retry/" + event.map(Retrier::fire).orElseGet(() -> place(record));
        String type = event.map(FiredEvent::type).orElse(last(record.headers(), FiredEvent.EVENT_TYPE));
        Schedule schedule =
                Schedule.of(tenant, id, When.in(delay))
                        .key(ownKey(record))
                        .payload(record.value())
                        .type(type)
                        .requestId(id);
        for (Header each : counted(record)) {
            schedule.header(each.key(), each.value());
        }
        return schedule;
    }

    ProducerRecord<byte[], byte[]> deadLetter(ConsumerRecord<byte[], byte[]> record, Throwable cause) {
        Headers headers =
                counted(record)
                        .add("dead-letter-reason", bytes(String.valueOf(cause.getMessage())))
                        .add("dead-letter-origin", bytes(place(record)));
        return new ProducerRecord<>(deadLetters, null, ownKey(record), record.value(), headers);
    }

    private static Headers counted(ConsumerRecord<?, ?> record) {
        String failed = Integer.toString(attempt(record) + 1);
        return FiredEvent.own(record.headers()).add(ATTEMPT, bytes(failed));
    }

    /** The fire; of an event that a redrive has sent again, another name, or it would be a repeat. */
    private static String fire(FiredEvent event) {
        String redriven = event.redriven();
        return redriven == null || redriven.isEmpty()
                ? event.fireId()
                : event.fireId() + "/" + redriven;
    }

    /**
     * The key that was asked for. On the topic that tenants share, that of the record has its tenant
     * and a slash before it, which belfry adds at each fire.
     */
    private static byte[] ownKey(ConsumerRecord<byte[], byte[]> record) {
        byte[] key = record.key();
        String tenant = last(record.headers(), "belfry-schedule-tenant");
        // Its name ends so. That of a tenant's own goes on with the tenant's name, which may end so too.
        boolean shared = record.topic().endsWith("fired") && !record.topic().contains("fired.");
        if (key == null || tenant == null || !shared) {
            return key;
        }
        byte[] before = bytes(tenant + "/");
        boolean found = key.length >= before.length && Arrays.equals(before, Arrays.copyOf(key, before.length));
        return found ? Arrays.copyOfRange(key, before.length, key.length) : key;
    }

    private static String place(ConsumerRecord<?, ?> record) {
        return "%s/%d/%d".formatted(record.topic(), record.partition(), record.offset());
    }
}
