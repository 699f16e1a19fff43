package io.belfry.client;

/** A request was answered, with a no. */
public class RefusedException extends RuntimeException {
    private static final long serialVersionUID = 1;
    private final transient Verdict verdict;

    RefusedException(Verdict verdict) {
        super(
                "%s (%s) %s/%s: %s"
                        .formatted(
                                verdict.outcome(), verdict.code(), verdict.tenant(), verdict.id(),
                                verdict.reason()));
        this.verdict = verdict;
    }

    /** What belfry said. */
    public Verdict verdict() {
        return verdict;
    }
}
