package io.belfry.client;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * Keys as files: {@code folder/shop/k1} has 64 random bytes. The clients of all languages read the same
 * folder, such as a mounted secret.
 */
public record KeyFolder(Path folder) implements Keys {
    /** A tenant and the number of its key: what a header says is never a path. */
    private static final Pattern REFERENCE =
            Pattern.compile("[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}/k[1-9][0-9]{0,5}");

    static boolean isReference(String given) {
        return REFERENCE.matcher(given).matches();
    }

    @Override
    public Optional<String> current(String tenant) {
        if (!isReference(tenant + "/k1")) {
            return Optional.empty();
        }
        try (Stream<Path> files = Files.list(folder.resolve(tenant))) {
            return files.map(file -> tenant + "/" + file.getFileName())
                    .filter(KeyFolder::isReference)
                    .max(Comparator.comparingInt(name -> number(name, tenant)));
        } catch (NoSuchFileException error) {
            return Optional.empty();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    @Override
    public Optional<byte[]> named(String reference) {
        if (!isReference(reference)) {
            throw new IllegalArgumentException(
                    "'" + reference + "' names no key: a tenant, a slash, k and a number do, as shop/k1");
        }
        try {
            return Optional.of(Files.readAllBytes(folder.resolve(reference)));
        } catch (NoSuchFileException error) {
            return Optional.empty();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static int number(String reference, String tenant) {
        return Integer.parseInt(reference.substring(tenant.length() + 2));
    }
}
