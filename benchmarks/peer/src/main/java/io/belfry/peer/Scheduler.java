package io.belfry.peer;

import java.io.File;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.LongAdder;
import org.apache.avro.Schema;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.apache.kafka.streams.state.Stores;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;

/**
 * A scheduler as one writes it with Kafka Streams: requests wait in a store, and a punctuator fires
 * what is due, exactly once. It reads belfry's own requests, and knows neither cancels nor anything
 * that recurs.
 *
 * <p>It prints {@code state RUNNING}, and then what it has taken in and fired so far.
 */
public final class Scheduler {
    static final String STORE = "pending";
    static final LongAdder TAKEN = new LongAdder();
    static final LongAdder FIRED = new LongAdder();
    private static final int TELL_MS = 200;

    private Scheduler() {}

    public static void main(String[] arguments) throws Exception {
        Map<String, String> given = System.getenv();
        Schema written = new Schema.Parser().parse(new File(given.get("PEER_SCHEMA")));
        long punctuateMs = Long.parseLong(given.get("PEER_PUNCTUATE_MS"));
        int most = Integer.parseInt(given.get("PEER_FIRES_AT_ONCE"));
        String common = given.get("PEER_COMMON_TOPIC");
        String prefix = given.get("PEER_OUTPUT_PREFIX");

        var bytes = Serdes.ByteArray();
        var store =
                Stores.keyValueStoreBuilder(
                                Stores.persistentKeyValueStore(STORE), Serdes.Bytes(), bytes)
                        .withCachingDisabled();
        Topology topology =
                new Topology()
                        .addSource("requests", bytes.deserializer(), bytes.deserializer(), given.get("PEER_INPUT"))
                        .addProcessor(STORE, () -> new Pending(written, punctuateMs, most), "requests")
                        .addStateStore(store, STORE)
                        .addSink(
                                "fired",
                                (key, value, context) -> common != null ? common : prefix + Pending.tenant(context),
                                bytes.serializer(),
                                bytes.serializer(),
                                STORE);
        try (var streams = new KafkaStreams(topology, properties(given))) {
            streams.setStateListener((now, before) -> System.out.println("state " + now));
            streams.setUncaughtExceptionHandler(
                    error -> {
                        error.printStackTrace();
                        return org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler
                                .StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
                    });
            Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
            streams.start();
            for (String said = ""; ; Thread.sleep(TELL_MS)) {
                String now = "taken " + TAKEN.sum() + " fired " + FIRED.sum();
                if (!now.equals(said)) {
                    System.out.println(now);
                }
                said = now;
            }
        }
    }

    private static Properties properties(Map<String, String> given) {
        Properties found = new Properties();
        found.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, given.get("PEER_SERVERS"));
        found.put(StreamsConfig.APPLICATION_ID_CONFIG, given.get("PEER_APPLICATION"));
        found.put(StreamsConfig.STATE_DIR_CONFIG, given.get("PEER_STATE"));
        found.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        found.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, given.get("PEER_COMMIT_MS"));
        found.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        found.put(StreamsConfig.POLL_MS_CONFIG, 5);
        found.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        found.put(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG, Rocks.class);
        found.put("auto.offset.reset", "earliest");
        found.put("max.poll.records", 5_000);
        found.put("group.instance.id", "one");
        found.put("linger.ms", 5);
        found.put("batch.size", 512 * 1024);
        found.put("buffer.memory", 128L * 1024 * 1024);
        found.put("compression.type", "lz4");
        return found;
    }

    /** Memory tables of 64 MiB, three of them, and a cache of 128 MiB. */
    public static final class Rocks implements RocksDBConfigSetter {
        private final LRUCache cache = new LRUCache(128L * 1024 * 1024);

        @Override
        public void setConfig(String store, Options options, Map<String, Object> configs) {
            options.setWriteBufferSize(64L * 1024 * 1024);
            options.setMaxWriteBufferNumber(3);
            // Streams looks at the cache of its own instance.
            var table = (BlockBasedTableConfig) options.tableFormatConfig();
            options.setTableFormatConfig(table.setBlockCache(cache));
        }

        @Override
        public void close(String store, Options options) {
            cache.close();
        }
    }
}
