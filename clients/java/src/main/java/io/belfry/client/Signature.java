package io.belfry.client;

import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.util.HexFormat;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;

/** The proof that a request is its tenant's. */
public final class Signature {
    static final String HEADER = "belfry-signature";

    private Signature() {}

    /** What the header {@code belfry-signature} of a record has to hold; it is made last. */
    public static String of(byte[] secret, String tenant, byte[] key, byte[] value, Headers headers) {
        Mac mac = hmac(secret);
        field(mac, Schedule.bytes(tenant));
        field(mac, key);
        field(mac, value);
        for (Header each : headers) {
            field(mac, Schedule.bytes(each.key()));
            field(mac, each.value());
        }
        return HexFormat.of().formatHex(mac.doFinal());
    }

    private static void field(Mac mac, byte[] given) {
        mac.update(ByteBuffer.allocate(4).putInt(given == null ? -1 : given.length).flip());
        if (given != null) {
            mac.update(given);
        }
    }

    private static Mac hmac(byte[] secret) {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(secret, "HmacSHA256"));
            return mac;
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException("Every Java has HmacSHA256.", error);
        }
    }
}
