package io.belfry.client;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;

/**
 * Who, which, when and what. Key, payload and headers are those of the event.
 *
 * <pre>{@code
 * Schedule.of("shop", "order/1", When.in(Duration.ofMinutes(30))).payload("not paid")
 * }</pre>
 */
public final class Schedule {
    final String tenant;
    final String id;
    private final When when;
    private final Headers own = new RecordHeaders();
    private String action = "UPSERT";
    private final Map<String, String> options = new LinkedHashMap<>();
    String requestId;
    byte[] key;
    byte[] payload;

    private Schedule(String tenant, String id, When when) {
        this.tenant = tenant;
        this.id = id;
        this.when = when;
    }

    /** An event of a tenant, under a name of its own. */
    public static Schedule of(String tenant, String id, When when) {
        return new Schedule(tenant, id, when);
    }

    /** Key of the event; without one it is the group, else the id. */
    public Schedule key(byte[] key) {
        this.key = key;
        return this;
    }

    /** The same, as UTF-8. */
    public Schedule key(String key) {
        return key(bytes(key));
    }

    /** Value of the event; without one it is null. */
    public Schedule payload(byte[] payload) {
        this.payload = payload;
        return this;
    }

    /** The same, as UTF-8. */
    public Schedule payload(String payload) {
        return payload(bytes(payload));
    }

    /** One more header of the event. Names that begin with {@code belfry-} are belfry's own. */
    public Schedule header(String name, byte[] value) {
        own.add(name, value);
        return this;
    }

    /** Events of one group keep their due order. */
    public Schedule group(String group) {
        return option("belfry-group", group);
    }

    /** Type of the event; it travels in the header {@code event-type} as well. */
    public Schedule type(String type) {
        return option("belfry-type", type);
    }

    /**
     * What becomes of an occurrence while the one before is not acknowledged: {@code ALLOW}, {@code
     * SKIP}, {@code QUEUE_ONE}, {@code QUEUE_ALL}, {@code CANCEL_OTHER} or {@code TERMINATE_OTHER}.
     */
    public Schedule overlap(String policy) {
        return option("belfry-overlap", policy);
    }

    /** The group waits until this event is acknowledged. */
    public Schedule serial() {
        return option("belfry-serial", "true");
    }

    /** The group waits while so many of its events are not acknowledged. */
    public Schedule concurrency(int most) {
        return option("belfry-concurrency", Integer.toString(most));
    }

    /** Longest wait for an acknowledgement; without one it is five minutes. */
    public Schedule ackTimeout(Duration longest) {
        return option("belfry-ack-timeout", When.milliseconds(longest));
    }

    /**
     * -9 to 9: while events of the tenant are held back, those of higher priority leave first. Not
     * for the events of a group.
     */
    public Schedule priority(int level) {
        return option("belfry-priority", Integer.toString(level));
    }

    /** An address that the event is posted to as well, or a JSON list of targets. */
    public Schedule webhook(String target) {
        return option("belfry-webhook", target);
    }

    /** The request counts only for this version of the schedule: {@code CONFLICT} otherwise. */
    public Schedule expectedVersion(long version) {
        return option("belfry-expected-version", Long.toString(version));
    }

    /** Why; kept in the history. */
    public Schedule reason(String reason) {
        return option("belfry-reason", reason);
    }

    /** Name of the request: a repeat within an hour changes nothing. Without one it is a new one. */
    public Schedule requestId(String requestId) {
        this.requestId = requestId;
        return this;
    }

    /** Leave a schedule that exists alone, with the verdict {@code CONFLICT}. */
    public Schedule createOnly() {
        this.action = "CREATE";
        return this;
    }

    Headers headers() {
        Headers headers = asking(tenant, id, action);
        when.headers.forEach((name, value) -> headers.add(name, bytes(value)));
        options.forEach((name, value) -> headers.add(name, bytes(value)));
        String type = options.get("belfry-type");
        if (type != null && own.lastHeader(FiredEvent.EVENT_TYPE) == null) {
            headers.add(FiredEvent.EVENT_TYPE, bytes(type));
        }
        for (Header each : own) {
            headers.add(each);
        }
        return headers;
    }

    private Schedule option(String name, String value) {
        if (value == null) {
            options.remove(name);
        } else {
            options.put(name, value);
        }
        return this;
    }

    /** Headers of a record that asks for something about one schedule. */
    static Headers asking(String tenant, String id, String action) {
        return new RecordHeaders()
                .add("belfry-tenant", bytes(tenant))
                .add("belfry-id", bytes(id))
                .add("belfry-action", bytes(action));
    }

    static byte[] bytes(String text) {
        return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
    }
}
