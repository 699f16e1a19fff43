package io.belfry.client;

import java.util.Optional;

/** The keys of tenants, by references such as {@code shop/k2}. */
public interface Keys {
    /** The reference of a tenant's newest key; empty where it has none. */
    Optional<String> current(String tenant);

    /** The 64 bytes of a key; empty where it is not there any more, or never was. */
    Optional<byte[]> named(String reference);
}
