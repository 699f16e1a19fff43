package io.belfry.client;

import java.time.Duration;

/** A request was written, and its verdict did not come in time. To ask again with its id is safe. */
public class NoVerdictException extends RuntimeException {
    private static final long serialVersionUID = 1;
    private final String requestId;

    NoVerdictException(String name, String requestId, Duration timeout) {
        super(
                "No verdict on %s within %s (request %s): does a worker run?"
                        .formatted(name, timeout, requestId));
        this.requestId = requestId;
    }

    /** Name of the request. */
    public String requestId() {
        return requestId;
    }
}
