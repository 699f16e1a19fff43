/**
 * Schedule events in Kafka with belfry: ask, hear the verdict, read what fires, retry.
 *
 * Requests are plain messages with headers, so neither Avro nor a schema registry is needed.
 */
export { Client, NoVerdictError, type ClientOptions } from './client.js'
export { Encryption, KeyFolder, NotDecryptedError, type Keys } from './encryption.js'
export { parseFired, type Claim, type FiredEvent, type Source } from './fired.js'
export { Retrier, attempt, delayMs, type Backoff, type Failed, type RetryOptions } from './retry.js'
export type { Recurring, Schedule, When } from './schedule.js'
export { signature } from './signature.js'
export { RefusedError, parseVerdict, type Verdict } from './verdict.js'
