package io.belfry.client.spring;

import io.belfry.client.BelfryClient;
import io.belfry.client.FiredEvent;
import io.belfry.client.Options;
import io.belfry.client.Retrier;
import java.lang.reflect.Type;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.kafka.autoconfigure.KafkaAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.core.MethodParameter;
import org.springframework.kafka.annotation.KafkaListenerConfigurer;
import org.springframework.kafka.config.ConcurrentKafkaListenerContainerFactory;
import org.springframework.kafka.core.ConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.KafkaAdmin;
import org.springframework.kafka.listener.DefaultErrorHandler;
import org.springframework.kafka.listener.ListenerExecutionFailedException;
import org.springframework.kafka.support.converter.MessagingMessageConverter;
import org.springframework.messaging.Message;
import org.springframework.messaging.handler.invocation.HandlerMethodArgumentResolver;
import org.springframework.messaging.support.MessageBuilder;
import org.springframework.util.backoff.FixedBackOff;

/** Makes what {@link BelfryListener} needs, from Spring Boot's own settings for Kafka. */
@AutoConfiguration(after = KafkaAutoConfiguration.class)
@ConditionalOnClass({KafkaAutoConfiguration.class, ConcurrentKafkaListenerContainerFactory.class})
@ConditionalOnProperty("belfry.tenant")
@EnableConfigurationProperties(BelfryProperties.class)
public class BelfryAutoConfiguration {
    static final String FACTORY = "belfryListenerContainerFactory";
    private static final String EVENT = "belfry_event";

    /** Asks with the properties that Spring Boot's admin client has. */
    @Bean
    @ConditionalOnMissingBean
    public BelfryClient belfryClient(KafkaAdmin admin, BelfryProperties belfry) {
        Options options = Options.defaults().withPrefix(belfry.prefix());
        if (belfry.secret() != null) {
            byte[] secret = belfry.secret().getBytes(StandardCharsets.UTF_8);
            options = options.withSecrets(Map.of(belfry.tenant(), secret));
        }
        return new BelfryClient(admin.getConfigurationProperties(), options);
    }

    /** Puts back what a listener could not handle. */
    @Bean
    @ConditionalOnMissingBean
    public Retrier belfryRetrier(BelfryClient client, BelfryProperties belfry) {
        BelfryProperties.Retry retry = belfry.retry();
        String deadLetters =
                retry.deadLetters() == null ? belfry.tenant() + ".dead-letters" : retry.deadLetters();
        return new Retrier(client, belfry.tenant(), retry.backoff(), deadLetters);
    }

    /** Containers of {@link BelfryListener}: bytes, committed records, retries through belfry. */
    @Bean(FACTORY)
    @ConditionalOnMissingBean(name = FACTORY)
    public ConcurrentKafkaListenerContainerFactory<byte[], byte[]> belfryListenerContainerFactory(
            ConsumerFactory<?, ?> kafka, Retrier retrier) {
        Map<String, Object> reading = new HashMap<>(kafka.getConfigurationProperties());
        reading.put(ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed");
        var factory = new ConcurrentKafkaListenerContainerFactory<byte[], byte[]>();
        factory.setConsumerFactory(
                new DefaultKafkaConsumerFactory<>(
                        reading, new ByteArrayDeserializer(), new ByteArrayDeserializer()));
        factory.setRecordMessageConverter(new WithEvent());
        // No try in place: belfry has the record come again, and no other waits behind it.
        var handler =
                new DefaultErrorHandler((record, error) -> putBack(retrier, record, error), new FixedBackOff(0, 0));
        handler.setCommitRecovered(true);
        factory.setCommonErrorHandler(handler);
        return factory;
    }

    /** Lets listeners have a parameter of type {@link FiredEvent}. */
    @Bean
    public KafkaListenerConfigurer belfryListenerParameters() {
        return registrar -> {
            List<HandlerMethodArgumentResolver> all =
                    new ArrayList<>(registrar.getCustomMethodArgumentResolvers());
            all.add(new EventParameter());
            registrar.setCustomMethodArgumentResolvers(all.toArray(HandlerMethodArgumentResolver[]::new));
        };
    }

    @SuppressWarnings("unchecked") // The containers above read bytes alone.
    private static void putBack(Retrier retrier, ConsumerRecord<?, ?> record, Exception error) {
        Throwable cause =
                error instanceof ListenerExecutionFailedException && error.getCause() != null
                        ? error.getCause()
                        : error;
        retrier.retry((ConsumerRecord<byte[], byte[]>) record, cause).join();
    }

    private static final class WithEvent extends MessagingMessageConverter {
        @Override
        public Message<?> toMessage(
                ConsumerRecord<?, ?> record, Object acknowledgment, Object consumer, Type type) {
            Message<?> message = super.toMessage(record, acknowledgment, consumer, type);
            return FiredEvent.of(record.headers())
                    .<Message<?>>map(
                            event -> MessageBuilder.fromMessage(message).setHeader(EVENT, event).build())
                    .orElse(message);
        }
    }

    private static final class EventParameter implements HandlerMethodArgumentResolver {
        @Override
        public boolean supportsParameter(MethodParameter parameter) {
            return parameter.getParameterType() == FiredEvent.class;
        }

        @Override
        public Object resolveArgument(MethodParameter parameter, Message<?> message) {
            return message.getHeaders().get(EVENT);
        }
    }
}
