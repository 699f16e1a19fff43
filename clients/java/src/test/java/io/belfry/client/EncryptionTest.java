package io.belfry.client;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class EncryptionTest {
    @TempDir Path folder;

    private static Schedule schedule(String tenant, String payload) {
        return Schedule.of(tenant, "a", When.in(Duration.ZERO)).payload(payload);
    }

    @Test
    void theNewestKeyEncryptsAndOnceItIsShreddedNothingOpens() throws IOException {
        Path shop = Files.createDirectory(folder.resolve("shop"));
        Files.write(shop.resolve("k9"), new byte[64]);
        Files.write(shop.resolve("k10"), new byte[64]);
        Files.writeString(shop.resolve("k11.new"), "x");
        Files.writeString(shop.resolve("other"), "x");
        KeyFolder keys = new KeyFolder(folder);
        Encryption encryption = new Encryption(keys);
        assertEquals(Optional.of("shop/k10"), keys.current("shop"));

        Schedule sealed = encryption.seal(schedule("shop", "4711"));
        Headers headers = sealed.headers();
        assertEquals("shop/k10", FiredEvent.last(headers, "encryption-key"));
        assertArrayEquals(Schedule.bytes("4711"), encryption.open(headers, sealed.payload));

        Files.delete(shop.resolve("k10"));
        assertThrows(NotDecryptedException.class, () -> encryption.open(headers, sealed.payload));
        Files.write(shop.resolve("k10"), new byte[63]);
        assertThrows(NotDecryptedException.class, () -> encryption.open(headers, sealed.payload));
    }

    @Test
    void whatNobodyEncryptedStaysAsItIs() {
        Encryption encryption = new Encryption(new KeyFolder(folder));
        assertEquals(0, encryption.seal(schedule("nobody", "")).payload.length);
        byte[] plain = Schedule.bytes("as it is");
        assertEquals(plain, encryption.open(new RecordHeaders(), plain));
        Headers named = new RecordHeaders().add("encryption-key", Schedule.bytes("shop/k1"));
        assertEquals(null, encryption.open(named, null));
    }

    @Test
    void whatIsNoNameOfAKeyIsNoPath() {
        KeyFolder keys = new KeyFolder(folder);
        Encryption encryption = new Encryption(keys);
        for (String tenant : new String[] {"nobody", "..", "a/b", ""}) {
            Schedule asked = schedule(tenant, "x");
            assertThrows(IllegalStateException.class, () -> encryption.seal(asked), tenant);
        }
        for (String given : new String[] {"../k1", "shop/k1/../k10", "shop/k0", "/etc/passwd", ""}) {
            assertThrows(IllegalArgumentException.class, () -> keys.named(given), given);
        }
    }
}
