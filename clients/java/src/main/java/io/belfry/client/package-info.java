/**
 * Schedule events in Kafka with belfry: ask, hear the verdict, read what fires, retry.
 *
 * <p>Requests are plain records with headers, so neither Avro nor a schema registry is needed.
 */
package io.belfry.client;
