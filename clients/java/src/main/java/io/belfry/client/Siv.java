package io.belfry.client;

import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.Optional;
import javax.crypto.Cipher;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/**
 * AES-SIV with 512 bits and one associated datum (RFC 5297), which Java has no name for. It needs no
 * nonce: the first block is a code of datum and text, and the counter that the text is encrypted with.
 */
final class Siv {
    private static final int BLOCK = 16;
    private final SecretKeySpec codes;
    private final SecretKeySpec stream;

    /** The first half of the key makes codes, the second encrypts. */
    Siv(byte[] key) {
        codes = new SecretKeySpec(key, 0, key.length / 2, "AES");
        stream = new SecretKeySpec(key, key.length / 2, key.length / 2, "AES");
    }

    byte[] seal(byte[] text, byte[] datum) {
        byte[] code = code(text, datum);
        byte[] sealed = Arrays.copyOf(code, BLOCK + text.length);
        System.arraycopy(crypt(code, text), 0, sealed, BLOCK, text.length);
        return sealed;
    }

    /** Empty for what was not sealed with this key and this datum. */
    Optional<byte[]> open(byte[] sealed, byte[] datum) {
        if (sealed.length < BLOCK) {
            return Optional.empty();
        }
        byte[] code = Arrays.copyOf(sealed, BLOCK);
        byte[] text = crypt(code, Arrays.copyOfRange(sealed, BLOCK, sealed.length));
        return MessageDigest.isEqual(code(text, datum), code) ? Optional.of(text) : Optional.empty();
    }

    private byte[] crypt(byte[] code, byte[] text) {
        byte[] counter = code.clone();
        counter[8] &= 0x7f;
        counter[12] &= 0x7f;
        return aes("AES/CTR/NoPadding", stream, counter, text);
    }

    /** S2V of the RFC for one datum. */
    private byte[] code(byte[] text, byte[] datum) {
        byte[] mixed = doubled(cmac(new byte[BLOCK]));
        mix(mixed, 0, cmac(datum));
        byte[] last = text.clone();
        if (text.length < BLOCK) {
            mixed = doubled(mixed);
            last = padded(text, 0);
        }
        mix(last, last.length - BLOCK, mixed);
        return cmac(last);
    }

    /** That of RFC 4493: the last block of CBC, after a mark of how the message ends. */
    private byte[] cmac(byte[] message) {
        byte[] mark = doubled(chained(new byte[BLOCK]));
        byte[] blocks = message.clone();
        if (message.length == 0 || message.length % BLOCK != 0) {
            mark = doubled(mark);
            blocks = padded(message, message.length / BLOCK * BLOCK);
        }
        mix(blocks, blocks.length - BLOCK, mark);
        return chained(blocks);
    }

    private byte[] chained(byte[] blocks) {
        byte[] all = aes("AES/CBC/NoPadding", codes, new byte[BLOCK], blocks);
        return Arrays.copyOfRange(all, all.length - BLOCK, all.length);
    }

    private static byte[] aes(String name, SecretKeySpec key, byte[] start, byte[] text) {
        try {
            Cipher cipher = Cipher.getInstance(name);
            cipher.init(Cipher.ENCRYPT_MODE, key, new IvParameterSpec(start));
            return cipher.doFinal(text);
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException("Every Java has " + name + ".", error);
        }
    }

    /** A block times x, in the field of 2 to the 128. */
    private static byte[] doubled(byte[] given) {
        byte[] found = new byte[BLOCK];
        for (int i = 0; i < BLOCK; i++) {
            int next = i + 1 < BLOCK ? given[i + 1] & 0xff : 0;
            found[i] = (byte) (given[i] << 1 | next >> 7);
        }
        found[BLOCK - 1] ^= (byte) (given[0] < 0 ? 0x87 : 0);
        return found;
    }

    /** The same, where the last block begins at an index: filled with a bit and zeros. */
    private static byte[] padded(byte[] given, int last) {
        byte[] found = Arrays.copyOf(given, last + BLOCK);
        found[given.length] = (byte) 0x80;
        return found;
    }

    private static void mix(byte[] into, int at, byte[] block) {
        for (int i = 0; i < BLOCK; i++) {
            into[at + i] ^= block[i];
        }
    }
}
