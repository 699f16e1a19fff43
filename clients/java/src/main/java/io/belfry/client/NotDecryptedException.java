package io.belfry.client;

/** A payload cannot be read: its key is gone, or it is not what was encrypted. */
public class NotDecryptedException extends RuntimeException {
    private static final long serialVersionUID = 1;

    NotDecryptedException(String why) {
        super(why);
    }
}
