import { randomUUID } from 'node:crypto'
import kafkajs from 'kafkajs'
import type {
  Consumer,
  ICustomPartitioner,
  Kafka,
  Message,
  Producer,
  RecordMetadata,
} from 'kafkajs'
import lz4 from 'lz4-napi'
import { last, type FiredEvent } from './fired.js'
import { asking, headersOf, type Action, type Schedule } from './schedule.js'
import { pairs, signature } from './signature.js'
import { RefusedError, answers, parseVerdict, refused, type Verdict } from './verdict.js'

const { CompressionCodecs, CompressionTypes, Partitioners } = kafkajs

// Belfry compresses with LZ4, which KafkaJS leaves to others.
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: ({ buffer }: { buffer: Buffer }) => lz4.compressFrame(buffer),
  decompress: (buffer: Buffer) => lz4.decompressFrame(buffer),
})

export interface ClientOptions {
  /** Prefix of belfry's topics (`belfry.`). */
  prefix?: string
  /** By tenant, what its requests are signed with. */
  secrets?: Record<string, Buffer | string>
  /** Write to each tenant's own topic, `belfry.schedules.<tenant>`. */
  ownTopics?: boolean
  /** Longest wait for a verdict, in milliseconds (10 000). */
  timeoutMs?: number
  /** Consumer group in which verdicts are read; it has to be this client's alone (a new name). */
  group?: string
}

/** A request was written, and its verdict did not come in time. To ask again with its id is safe. */
export class NoVerdictError extends Error {
  constructor(
    readonly requestId: string,
    name: string,
    timeoutMs: number,
  ) {
    super(`No verdict on ${name} within ${timeoutMs} ms (request ${requestId}): does a worker run?`)
    this.name = 'NoVerdictError'
  }
}

type Told = (verdict: Verdict) => void

/** Writes requests and waits for their verdicts, which it reads from its making until `close`. */
export class Client {
  private readonly waiting = new Map<string, Set<Told>>()
  private readonly producer: Producer
  private readonly consumer: Consumer
  private readonly group: string
  private broken?: Error

  private constructor(
    private readonly kafka: Kafka,
    private readonly options: ClientOptions,
  ) {
    this.group = options.group ?? `${this.prefix}client.${randomUUID()}`
    this.producer = kafka.producer({ createPartitioner })
    this.consumer = kafka.consumer({ groupId: this.group })
  }

  /** Make a client that is ready to ask. */
  static async connect(kafka: Kafka, options: ClientOptions = {}): Promise<Client> {
    const client = new Client(kafka, options)
    try {
      await client.producer.connect()
      await client.readFromNow()
    } catch (error) {
      await Promise.allSettled([client.producer.disconnect(), client.consumer.disconnect()])
      throw error
    }
    return client
  }

  /** Give the connections back. */
  async close(): Promise<void> {
    await this.producer.disconnect()
    await this.consumer.disconnect()
    const admin = this.kafka.admin()
    await admin.connect()
    // A group that nobody comes back to; where it may not be deleted, Kafka does that later.
    await admin.deleteGroups([this.group]).catch(() => undefined)
    await admin.disconnect()
  }

  /** Ask for an event, or change one that waits. Rejects with RefusedError where the verdict is a no. */
  schedule(schedule: Schedule): Promise<Verdict> {
    const { tenant, id, requestId, key = null, payload = null } = schedule
    return this.ask(tenant, id, { key, value: payload, headers: headersOf(schedule) }, requestId)
  }

  /** Take a schedule back: `TOO_LATE` where it has fired, `NOT_FOUND` where it never was. */
  cancel(tenant: string, id: string): Promise<Verdict> {
    return this.act(tenant, id, 'CANCEL')
  }

  /** Keep a schedule from firing until `resume`. */
  pause(tenant: string, id: string): Promise<Verdict> {
    return this.act(tenant, id, 'PAUSE')
  }

  /** Let a schedule that was paused go on. */
  resume(tenant: string, id: string): Promise<Verdict> {
    return this.act(tenant, id, 'RESUME')
  }

  /** Fire a schedule once more, now. */
  trigger(tenant: string, id: string): Promise<Verdict> {
    return this.act(tenant, id, 'TRIGGER')
  }

  /** Say that an event is done, so that what waits for it goes on: `UPDATED`, or `UNCHANGED`. */
  acknowledge(tenant: string, event: Pick<FiredEvent, 'id' | 'fireId'>): Promise<Verdict> {
    const headers = { ...asking(tenant, event.id, 'ACK'), 'belfry-fire-id': event.fireId }
    return this.ask(tenant, event.id, { key: null, value: null, headers })
  }

  /** Write a message to a topic, and return where it lies. */
  async produce(topic: string, message: Message): Promise<RecordMetadata> {
    const [sent] = await this.producer.send({ topic, messages: [message] })
    return sent!
  }

  private act(tenant: string, id: string, action: Action): Promise<Verdict> {
    return this.ask(tenant, id, { key: null, value: null, headers: asking(tenant, id, action) })
  }

  private async ask(
    tenant: string,
    id: string,
    message: Message,
    requestId: string = randomUUID(),
  ): Promise<Verdict> {
    if (this.broken) throw this.broken
    const headers = { ...message.headers, 'belfry-request-id': requestId }
    const secret = this.options.secrets?.[tenant]
    const { key, value } = message
    const proof =
      secret === undefined
        ? {}
        : { 'belfry-signature': signature(secret, tenant, key, value, pairs(headers)) }
    const topic = `${this.prefix}schedules${this.options.ownTopics ? `.${tenant}` : ''}`
    const heard = new Inbox()
    const told = (verdict: Verdict) => heard.put(verdict)
    this.waiting.set(requestId, (this.waiting.get(requestId) ?? new Set()).add(told))
    try {
      const sent = await this.produce(topic, { key, value, headers: { ...headers, ...proof } })
      const timeoutMs = this.options.timeoutMs ?? 10_000
      const verdict = await heard.first((each) => isOn(each, tenant, id, sent), timeoutMs)
      if (!verdict) throw new NoVerdictError(requestId, `${tenant}/${id}`, timeoutMs)
      if (refused(verdict)) throw new RefusedError(verdict)
      return verdict
    } finally {
      const left = this.waiting.get(requestId)
      left?.delete(told)
      if (left?.size === 0) this.waiting.delete(requestId)
    }
  }

  /**
   * Stand at the end of every partition before the first request is written, so that no verdict can
   * be missed.
   */
  private async readFromNow(): Promise<void> {
    const topic = `${this.prefix}lifecycle`
    const admin = this.kafka.admin()
    await admin.connect()
    const ends = await admin.fetchTopicOffsets(topic).finally(() => admin.disconnect())
    this.consumer.on('consumer.crash', ({ payload }) => {
      if (!payload.restart) this.broken = payload.error
    })
    await this.consumer.connect()
    await this.consumer.subscribe({ topic })
    await this.consumer.run({ eachMessage: async ({ message }) => this.hear(message.value) })
    for (const { partition, offset } of ends) this.consumer.seek({ topic, partition, offset })
  }

  private hear(value: Buffer | null): void {
    if (!value) return
    try {
      const verdict = parseVerdict(value)
      if (!answers(verdict)) return
      for (const told of this.waiting.get(verdict.requestId ?? '') ?? []) told(verdict)
    } catch (error) {
      // What is no lifecycle event answers nobody.
      if (!(error instanceof RangeError)) throw error
    }
  }

  private get prefix(): string {
    return this.options.prefix ?? 'belfry.'
  }
}

/** Verdicts that come before the request's place is known are kept until it is. */
class Inbox {
  private readonly kept: Verdict[] = []
  private wake = () => {}

  put(verdict: Verdict): void {
    this.kept.push(verdict)
    this.wake()
  }

  first(wanted: (each: Verdict) => boolean, timeoutMs: number): Promise<Verdict | undefined> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(undefined), timeoutMs)
      this.wake = () => {
        const found = this.kept.find(wanted)
        if (!found) return
        clearTimeout(timer)
        resolve(found)
      }
      this.wake()
    })
  }
}

/** Whether a verdict is on this very record; one without a place is on any. */
function isOn(verdict: Verdict, tenant: string, id: string, sent: RecordMetadata): boolean {
  const { sourcePartition: partition, sourceOffset: offset } = verdict
  const here =
    partition === sent.partition && offset === BigInt(sent.baseOffset ?? sent.offset ?? -1)
  return verdict.tenant === tenant && verdict.id === id && (offset === undefined || here)
}

/**
 * A request goes straight to its tenant's home, whatever its key; other messages go by their key, as
 * Kafka's own clients send them.
 */
export const createPartitioner: ICustomPartitioner = () => {
  const byKey = Partitioners.DefaultPartitioner()
  return (args) => {
    const tenant = last(args.message.headers, 'belfry-tenant')
    return byKey(tenant === undefined ? args : { ...args, message: { key: tenant, value: null } })
  }
}
