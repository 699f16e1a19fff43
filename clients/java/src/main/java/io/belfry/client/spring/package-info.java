/**
 * What an application with Spring Boot and Spring for Apache Kafka gets by having this library: a
 * {@link io.belfry.client.BelfryClient}, and {@link io.belfry.client.spring.BelfryListener}, whose
 * methods are called again later when they fail.
 *
 * <pre>
 * belfry.tenant=shop                    who the application is; without it nothing is made
 * belfry.prefix=belfry.
 * belfry.secret=…                       what its requests are signed with
 * belfry.retry.first=1s                 how failed records come again
 * belfry.retry.factor=2
 * belfry.retry.most=1h
 * belfry.retry.attempts=8
 * belfry.retry.dead-letters=shop.dead   the topic for what has failed in every try
 * </pre>
 */
package io.belfry.client.spring;
