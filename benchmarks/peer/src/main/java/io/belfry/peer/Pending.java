package io.belfry.peer;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Requests that wait, by their due instant and id; a punctuator fires what is due.
 *
 * <pre>
 * key     due instant (8 bytes), id
 * value   length of the tenant (2 bytes), tenant, length of the key (4 bytes), key, payload
 * </pre>
 */
final class Pending implements Processor<byte[], byte[], byte[], byte[]> {
    private static final String TENANT = "tenant";
    /** Bytes before a record of Avro that names its schema by a fingerprint. */
    private static final int HEAD = 10;

    private static final Schema READ =
            SchemaBuilder.record("io.belfry.ScheduleRequest").fields()
                    .requiredString("tenant").requiredString("schedule_id").optionalLong("at")
                    .optionalBytes("key").optionalBytes("payload")
                    .endRecord();

    private final GenericDatumReader<GenericRecord> reader;
    private final long punctuateMs;
    private final int most;
    private ProcessorContext<byte[], byte[]> context;
    private KeyValueStore<Bytes, byte[]> store;
    private BinaryDecoder decoder;
    /** Nothing waits before it, so a scan does not look at what has been deleted. */
    private Bytes lowest = instant(0);

    Pending(Schema written, long punctuateMs, int most) {
        this.reader = new GenericDatumReader<>(written, READ);
        this.punctuateMs = punctuateMs;
        this.most = most;
    }

    static String tenant(org.apache.kafka.streams.processor.RecordContext context) {
        return new String(context.headers().lastHeader(TENANT).value(), StandardCharsets.UTF_8);
    }

    @Override
    public void init(ProcessorContext<byte[], byte[]> context) {
        this.context = context;
        store = context.getStateStore(Scheduler.STORE);
        context.schedule(Duration.ofMillis(punctuateMs), PunctuationType.WALL_CLOCK_TIME, this::fire);
    }

    @Override
    public void process(Record<byte[], byte[]> record) {
        byte[] value = record.value();
        GenericRecord request;
        try {
            decoder = DecoderFactory.get().binaryDecoder(value, HEAD, value.length - HEAD, decoder);
            request = reader.read(null, decoder);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        byte[] id = request.get("schedule_id").toString().getBytes(StandardCharsets.UTF_8);
        Bytes key =
                Bytes.wrap(
                        ByteBuffer.allocate(8 + id.length).putLong((long) request.get("at")).put(id).array());
        byte[] tenant = request.get("tenant").toString().getBytes(StandardCharsets.UTF_8);
        ByteBuffer own = (ByteBuffer) request.get("key");
        ByteBuffer payload = (ByteBuffer) request.get("payload");
        store.put(
                key,
                ByteBuffer.allocate(6 + tenant.length + own.remaining() + payload.remaining())
                        .putShort((short) tenant.length).put(tenant)
                        .putInt(own.remaining()).put(own).put(payload)
                        .array());
        if (key.compareTo(lowest) < 0) {
            lowest = key;
        }
        Scheduler.TAKEN.increment();
    }

    private void fire(long nowMs) {
        Bytes end = instant(nowMs + 1);
        int fired = 0;
        try (var due = store.range(lowest, end)) {
            for (; due.hasNext() && fired < most; fired++) {
                var each = due.next();
                emit(ByteBuffer.wrap(each.value), nowMs);
                store.delete(each.key);
                lowest = each.key;
            }
            if (!due.hasNext()) {
                lowest = end;
            }
        }
        Scheduler.FIRED.add(fired);
    }

    private void emit(ByteBuffer kept, long nowMs) {
        var headers = new RecordHeaders().add(TENANT, next(kept, kept.getShort()));
        byte[] key = next(kept, kept.getInt());
        context.forward(new Record<>(key, next(kept, kept.remaining()), nowMs, headers));
    }

    private static byte[] next(ByteBuffer from, int length) {
        byte[] found = new byte[length];
        from.get(found);
        return found;
    }

    private static Bytes instant(long ms) {
        return Bytes.wrap(ByteBuffer.allocate(8).putLong(ms).array());
    }
}
