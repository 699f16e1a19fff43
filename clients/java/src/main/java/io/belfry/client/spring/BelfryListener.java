package io.belfry.client.spring;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.springframework.core.annotation.AliasFor;
import org.springframework.kafka.annotation.KafkaListener;

/**
 * A {@link KafkaListener} to the fired events of the application's tenant, and to other topics.
 *
 * <p>It reads committed records. A parameter of type {@link io.belfry.client.FiredEvent} is what the
 * headers say, null for a record that belfry did not fire. When the method throws, the record comes
 * again later, through {@link io.belfry.client.Retrier}, and counts as handled.
 */
@Documented
@Target(ElementType.METHOD)
@Retention(RetentionPolicy.RUNTIME)
@KafkaListener(containerFactory = BelfryAutoConfiguration.FACTORY)
public @interface BelfryListener {
    /** The topic of the tenant's fired events, to be named beside others. */
    String FIRED = "${belfry.prefix:belfry.}fired.${belfry.tenant}";

    /** The topics. */
    @AliasFor(annotation = KafkaListener.class, attribute = "topics")
    String[] value() default FIRED;

    /** The consumer group; without it that of {@code spring.kafka.consumer.group-id}. */
    @AliasFor(annotation = KafkaListener.class, attribute = "groupId")
    String groupId() default "";
}
