import type { KafkaMessage } from 'kafkajs'
import { Client } from './client.js'
import { ATTEMPT, EVENT_TYPE, last, ownHeaders, parseFired } from './fired.js'
import type { Schedule } from './schedule.js'
import { RefusedError } from './verdict.js'

/**
 * How long to wait after each try: `firstMs`, then `factor` times as long each time, never above
 * `mostMs`. `attempts` counts all tries, the first one too.
 */
export interface Backoff {
  firstMs: number
  factor: number
  mostMs: number
  attempts: number
}

/** Milliseconds to wait after so many failed tries; undefined when no try is left. */
export function delayMs(backoff: Backoff, failed: number): number | undefined {
  if (failed >= backoff.attempts) return undefined
  return Math.floor(Math.min(backoff.firstMs * backoff.factor ** (failed - 1), backoff.mostMs))
}

/** How often a message has been retried: 0 for one that comes for the first time. */
export function attempt(message: KafkaMessage): number {
  const text = last(message.headers, ATTEMPT) ?? ''
  return /^\d+$/.test(text) ? Number(text) : 0
}

/** A message and where it lies, as KafkaJS hands it to `eachMessage`. */
export interface Failed {
  topic: string
  partition: number
  message: KafkaMessage
}

export interface RetryOptions {
  /** On whose topic of fired events messages come again. */
  tenant: string
  backoff: Backoff
  /** The topic for what has failed in every try. */
  deadLetters: string
}

/** Puts back what a consumer could not handle, from any topic. */
export class Retrier {
  constructor(
    private readonly client: Client,
    private readonly options: RetryOptions,
  ) {}

  /**
   * Have a message come again after a wait, as a schedule with its own key, value and headers.
   * Resolves to true, or to false where no try was left and the message is a dead letter now. After
   * it the message counts as handled. To call it twice for one message makes one retry, since its id
   * is made of the fire id, or of the message's place in its topic. An event that a redrive has sent
   * again is tried again as well.
   */
  async retry(failed: Failed, cause: unknown): Promise<boolean> {
    const wait = delayMs(this.options.backoff, attempt(failed.message) + 1)
    if (wait === undefined) {
      await this.client.produce(this.options.deadLetters, deadLetter(failed, cause))
      return false
    }
    try {
      await this.client.schedule(again(this.options.tenant, failed, wait))
    } catch (error) {
      // Put back a moment ago, with another backoff.
      if (!(error instanceof RefusedError && error.verdict.code === 'request_id_reused'))
        throw error
    }
    return true
  }
}

/** The schedule that a failed message becomes. */
export function again(tenant: string, failed: Failed, inMs: number): Schedule {
  const { message } = failed
  const event = parseFired(message)
  // Not the id that it had before a redrive sent it again: within the hour it would be a repeat.
  const sentAgain = event?.redriven ? `/${event.redriven}` : ''
  const id = event ? `retry/${event.fireId}${sentAgain}` : `retry/${place(failed)}`
  const type = event ? event.type : last(message.headers, EVENT_TYPE)
  const [key, payload] = [ownKey(failed), message.value]
  return {
    tenant,
    id,
    when: { inMs },
    key,
    payload,
    headers: counted(message),
    type,
    requestId: id,
  }
}

/** The message that goes to the dead letters. */
export function deadLetter(failed: Failed, cause: unknown) {
  const [key, value] = [ownKey(failed), failed.message.value]
  const reason = cause instanceof Error ? cause.message : String(cause)
  const why = { 'dead-letter-reason': reason, 'dead-letter-origin': place(failed) }
  return { key, value, headers: { ...counted(failed.message), ...why } }
}

function counted(message: KafkaMessage) {
  return { ...ownHeaders(message.headers), [ATTEMPT]: String(attempt(message) + 1) }
}

/**
 * The key that was asked for. On the topic that tenants share, that of the message has its tenant and
 * a slash before it, which belfry adds at each fire.
 */
function ownKey({ topic, message: { key, headers } }: Failed): Buffer | null {
  const tenant = last(headers, 'belfry-schedule-tenant')
  // Its name ends so. That of a tenant's own goes on with the tenant's name, which may end so too.
  const shared = topic.endsWith('fired') && !topic.includes('fired.')
  if (tenant === undefined || !shared || key === null) return key
  const before = Buffer.from(`${tenant}/`)
  return key.subarray(0, before.length).equals(before) ? key.subarray(before.length) : key
}

function place({ topic, partition, message }: Failed): string {
  return `${topic}/${partition}/${message.offset}`
}
