package io.belfry.client;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HexFormat;
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

    /** The vector of RFC 5297, A.1: its keys have half the length. */
    @Test
    void theCipherIsThatOfTheRfc() {
        HexFormat hex = HexFormat.of();
        Siv siv =
                new Siv(hex.parseHex("fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"));
        byte[] text = hex.parseHex("112233445566778899aabbccddee");
        byte[] datum = hex.parseHex("101112131415161718191a1b1c1d1e1f2021222324252627");
        byte[] sealed = siv.seal(text, datum);
        assertEquals(
                "85632d07c6e8f37f950acd320a2ecc9340c02b9690c4dc04daef7f6afe5c", hex.formatHex(sealed));
        assertArrayEquals(text, siv.open(sealed, datum).orElseThrow());
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
            Headers headers = new RecordHeaders().add("encryption-key", Schedule.bytes(given));
            assertThrows(
                    NotDecryptedException.class,
                    () -> encryption.open(headers, Schedule.bytes("x")),
                    given);
        }
    }
}
