package io.belfry.example;

import io.belfry.client.BelfryClient;
import io.belfry.client.FiredEvent;
import io.belfry.client.Schedule;
import io.belfry.client.When;
import io.belfry.client.spring.BelfryListener;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.NewTopic;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.core.KafkaAdmin.NewTopics;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.messaging.handler.annotation.Payload;

/** The shop with Spring Boot: what fires calls a method, and what fails comes again later. */
@EnableAutoConfiguration
public class SpringShop {
    private static final String CHARGES = "${belfry.prefix}example.spring.charges";
    private static final String DEAD = "${belfry.retry.dead-letters}";
    private final CountDownLatch open = new CountDownLatch(2);

    /** Greetings that fire, and charges, whether they come for the first time or again. */
    @BelfryListener({CHARGES, BelfryListener.FIRED})
    void handle(FiredEvent event, @Payload String text) {
        if (event != null && "greeting".equals(event.type())) {
            System.out.println("fired " + event.id() + ": " + text);
            open.countDown();
            return;
        }
        System.out.println(text + " fails");
        throw new IllegalStateException("the bank is away");
    }

    /** What has failed in every try. */
    @KafkaListener(topics = DEAD)
    void bury(String text) {
        System.out.println("dead letter: " + text);
        open.countDown();
    }

    @Bean
    NewTopics topics(@Value(CHARGES) String charges, @Value(DEAD) String dead) {
        return new NewTopics(new NewTopic(charges, 1, (short) 1), new NewTopic(dead, 1, (short) 1));
    }

    public static void main(String[] arguments) throws InterruptedException {
        Map<String, String> given = System.getenv();
        String prefix = given.getOrDefault("BELFRY_CLUSTER__TOPIC_PREFIX", "belfry.");
        String servers = given.getOrDefault("BELFRY_BOOTSTRAP_SERVERS", "localhost:9092");
        var application = new SpringApplication(SpringShop.class);
        Map<String, Object> settings = new HashMap<>();
        settings.put("spring.main.banner-mode", "off");
        settings.put("spring.kafka.bootstrap-servers", servers);
        settings.put("spring.kafka.consumer.group-id", prefix + "example.spring");
        settings.put("spring.kafka.consumer.auto-offset-reset", "earliest");
        settings.put("belfry.tenant", "spring");
        settings.put("belfry.prefix", prefix);
        settings.put("belfry.secret", given.get("BELFRY_SECRET"));
        settings.put("belfry.retry.first", "200ms");
        settings.put("belfry.retry.attempts", "3");
        settings.put("belfry.retry.dead-letters", prefix + "example.spring.charges.dead");
        application.setDefaultProperties(settings);
        try (var context = application.run(arguments)) {
            var belfry = context.getBean(BelfryClient.class);
            When soon = When.in(Duration.ofSeconds(1));
            var greeting = Schedule.of("spring", "greeting/1", soon).key("customer-7").type("greeting");
            var verdict = belfry.schedule(greeting.payload("hello from Spring")).join();
            System.out.println(verdict.outcome() + " " + verdict.id());

            @SuppressWarnings("unchecked")
            KafkaTemplate<String, String> kafka = context.getBean(KafkaTemplate.class);
            kafka.send(prefix + "example.spring.charges", "order-1", "card 4711").join();
            context.getBean(SpringShop.class).open.await(30, TimeUnit.SECONDS);
        }
    }
}
