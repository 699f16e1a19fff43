// A shop that uses belfry: it schedules, cancels, hears verdicts, reads what fires, and puts back
// charges that fail.
import { Kafka, logLevel } from 'kafkajs'
import { Client, RefusedError, Retrier, attempt, parseFired } from 'belfry-client'

const TENANT = 'typescript'
const prefix = process.env.BELFRY_CLUSTER__TOPIC_PREFIX ?? 'belfry.'
const brokers = [process.env.BELFRY_BOOTSTRAP_SERVERS ?? 'localhost:9092']
const secret = process.env.BELFRY_SECRET
const kafka = new Kafka({ brokers, logLevel: logLevel.ERROR })
const belfry = await Client.connect(kafka, { prefix, secrets: secret ? { [TENANT]: secret } : {} })

/** Schedule and cancel. Each call resolves once belfry has answered. */
async function ask(): Promise<void> {
  const verdict = await belfry.schedule({
    tenant: TENANT,
    id: 'greeting/1',
    when: { inMs: 1_000 },
    key: 'customer-7',
    payload: 'hello from TypeScript',
    type: 'greeting',
    group: 'customer-7',
    serial: true,
  })
  console.log(verdict.outcome, verdict.id, 'version', verdict.version)

  const mondays = { cron: '0 9 * * MON', timezone: 'Europe/Paris', except: '* * 25 12 *' }
  await belfry.schedule({
    tenant: TENANT,
    id: 'report',
    when: { ...mondays, maxFires: 52 },
    overlap: 'SKIP',
    reason: 'the weekly report',
  })
  console.log((await belfry.cancel(TENANT, 'report')).outcome, 'report')

  const at = new Date(Date.now() + 3_600_000)
  await belfry.schedule({ tenant: TENANT, id: 'closing', when: { at } })
  console.log((await belfry.cancel(TENANT, 'closing')).outcome, 'closing')

  try {
    await belfry.cancel(TENANT, 'nothing')
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error
    console.log(error.verdict.outcome, error.verdict.id)
  }
}

/**
 * Read what fires, and charges from a topic of the shop's own. A charge that fails comes again among
 * the fired events, until it ends as a dead letter.
 */
async function consume(): Promise<void> {
  const charges = `${prefix}example.typescript.charges`
  const deadLetters = `${charges}.dead`
  const backoff = { firstMs: 200, factor: 2, mostMs: 3_600_000, attempts: 3 }
  const retrier = new Retrier(belfry, { tenant: TENANT, backoff, deadLetters })
  const admin = kafka.admin()
  await admin.connect()
  const there = await admin.listTopics()
  const missing = [charges, deadLetters].filter((topic) => !there.includes(topic))
  await admin.createTopics({ topics: missing.map((topic) => ({ topic })) })
  await admin.disconnect()
  await belfry.produce(charges, { key: 'order-1', value: 'card 4711' })

  const consumer = kafka.consumer({ groupId: `${prefix}example.typescript` }) // reads committed
  await consumer.connect()
  const topics = [charges, `${prefix}fired.${TENANT}`]
  await consumer.subscribe({ topics, fromBeginning: true })
  const open = new Set(['greeting', 'charge'])
  await new Promise<void>((done, fail) => {
    consumer.on('consumer.crash', ({ payload }) => fail(payload.error))
    void consumer.run({
      eachMessage: async ({ topic, partition, message }) => {
        const event = parseFired(message)
        if (event?.type === 'greeting') {
          console.log(`fired ${event.id}, occurrence ${event.occurrence}: ${event.value}`)
          console.log((await belfry.acknowledge(TENANT, event)).outcome, event.id)
          open.delete('greeting')
        } else {
          console.log(`try ${attempt(message) + 1} of ${message.value} fails`)
          const cause = new Error('the bank is away')
          const again = await retrier.retry({ topic, partition, message }, cause)
          if (!again) open.delete('charge')
        }
        if (open.size === 0) done()
      },
    })
  })
  await consumer.disconnect()
  console.log('dead letter in', deadLetters)
}

await ask()
await consume()
await belfry.close()
