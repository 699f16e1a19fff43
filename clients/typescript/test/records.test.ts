import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { IHeaders, KafkaMessage } from 'kafkajs'
import { RefusedError, attempt, parseFired } from '../src/index.js'
import { again, deadLetter } from '../src/retry.js'
import { headersOf, type When } from '../src/schedule.js'
import { pairs } from '../src/signature.js'
import { refused } from '../src/verdict.js'

function message(headers: IHeaders): KafkaMessage {
  const [key, value] = [Buffer.from('k'), Buffer.from('v')]
  return { key, value, headers, offset: '7', timestamp: '0', attributes: 0 } as KafkaMessage
}

function fired(headers: IHeaders = {}): KafkaMessage {
  return message({
    ...headers,
    'belfry-fire-id': 'f1',
    'belfry-schedule-id': 'order/1',
    'belfry-scheduled-at': '2026-12-01T09:00:00.250Z',
    'belfry-occurrence': '-1',
  })
}

const ASKED = { 'belfry-tenant': 'demo', 'belfry-id': 'a', 'belfry-action': 'UPSERT' }

test('schedules are headers', () => {
  const cases: [When, IHeaders][] = [
    [{ at: new Date(1_796_115_600_000) }, { 'belfry-at': '1796115600000' }],
    [{ inMs: 0.2 }, { 'belfry-in': '1' }],
    [{ everyMs: 90_000 }, { 'belfry-every': '90000' }],
    [{ cron: '0 9 * * MON' }, { 'belfry-cron': '0 9 * * MON' }],
    [
      { cron: '0 9 * * *', timezone: 'Europe/Rome' },
      { 'belfry-cron': '0 9 * * *', 'belfry-timezone': 'Europe/Rome' },
    ],
    [
      { rrule: 'FREQ=DAILY', except: '* * * * SUN' },
      { 'belfry-rrule': 'FREQ=DAILY', 'belfry-except-cron': '* * * * SUN' },
    ],
    [
      { everyMs: 60_000, timezone: 'Europe/Rome', except: '* 0-5 * * *' },
      {
        'belfry-every': '60000',
        'belfry-timezone': 'Europe/Rome',
        'belfry-except-cron': '* 0-5 * * *',
      },
    ],
    [
      { everyMs: 1, startAt: new Date(5), endAt: new Date(9), maxFires: 3, jitterMs: 0.5 },
      {
        'belfry-every': '1',
        'belfry-start-at': '5',
        'belfry-end-at': '9',
        'belfry-max-fires': '3',
        'belfry-jitter': '1',
      },
    ],
    [
      { cron: '@daily', calendar: 'de', onHoliday: 'NEXT_BUSINESS_DAY' },
      {
        'belfry-cron': '@daily',
        'belfry-calendar': 'de',
        'belfry-on-holiday': 'NEXT_BUSINESS_DAY',
      },
    ],
    [
      { inMs: 1, maxWaitMs: 2, misfire: 'SKIP', maxLatenessMs: 3 },
      {
        'belfry-in': '1',
        'belfry-max-wait': '2',
        'belfry-misfire': 'SKIP',
        'belfry-max-lateness': '3',
      },
    ],
    [{ inMs: 1, throttleMs: 2 }, { 'belfry-in': '1', 'belfry-throttle': '2' }],
    [
      { afterAck: 'x', ackDelayMs: 2, latestAt: new Date(5) },
      { 'belfry-after-ack': 'x', 'belfry-ack-delay': '2', 'belfry-latest-at': '5' },
    ],
    [{ afterGroup: 'g' }, { 'belfry-after-group': 'g' }],
  ]
  for (const [when, wanted] of cases) {
    assert.deepEqual(headersOf({ tenant: 'demo', id: 'a', when }), { ...ASKED, ...wanted })
  }
})

test('what a schedule may have', () => {
  const headers = { trace: '1' }
  const when = { inMs: 0 }
  assert.deepEqual(
    headersOf({ tenant: 'demo', id: 'a', when, group: 'g', type: 't', createOnly: true, headers }),
    {
      ...ASKED,
      'belfry-action': 'CREATE',
      'belfry-in': '0',
      'belfry-group': 'g',
      'belfry-type': 't',
      'event-type': 't',
      trace: '1',
    },
  )
})

test('what a schedule may ask for', () => {
  const asked = { overlap: 'SKIP', serial: true, concurrency: 2, ackTimeoutMs: 1_000 } as const
  const more = { priority: -2, webhook: 'https://a.example', expectedVersion: 3, reason: 'why' }
  assert.deepEqual(headersOf({ tenant: 'demo', id: 'a', when: { inMs: 0 }, ...asked, ...more }), {
    ...ASKED,
    'belfry-in': '0',
    'belfry-overlap': 'SKIP',
    'belfry-serial': 'true',
    'belfry-concurrency': '2',
    'belfry-ack-timeout': '1000',
    'belfry-priority': '-2',
    'belfry-webhook': 'https://a.example',
    'belfry-expected-version': '3',
    'belfry-reason': 'why',
  })
})

test('headers are signed in the order in which they are written', () => {
  assert.deepEqual(
    [...pairs({ b: ['1', Buffer.from('2')], a: '3' })],
    [
      ['b', '1'],
      ['b', Buffer.from('2')],
      ['a', '3'],
    ],
  )
})

test('fired events', () => {
  const event = parseFired(fired({ 'event-type': 'order.expired', 'belfry-missed': '3' }))
  assert.deepEqual(
    [event?.fireId, event?.id, event?.occurrence, event?.missed, event?.type, `${event?.value}`],
    ['f1', 'order/1', -1, 3, 'order.expired', 'v'],
  )
  assert.equal(event?.scheduledAt.getTime(), 1_796_115_600_250)
  const told = parseFired(
    fired({
      'belfry-schedule-type': 't',
      'belfry-schedule-tenant': 'shop',
      'belfry-schedule-group': 'g',
      'belfry-schedule-version': '7',
      'belfry-source': 'belfry.schedules/3/4711',
    }),
  )
  assert.deepEqual(told?.source, { topic: 'belfry.schedules', partition: 3, offset: 4711n })
  assert.deepEqual([told?.type, told?.tenant, told?.group, told?.version], ['t', 'shop', 'g', 7])
  assert.equal(parseFired(message({ 'belfry-fire-id': 'f' })), undefined)
})

test('retries', () => {
  const first = {
    topic: 'orders',
    partition: 1,
    message: message({ trace: '1', 'event-type': 'order' }),
  }
  const { headers, ...rest } = again('shop', first, 1_000)
  const [key, payload] = [first.message.key, first.message.value]
  const id = 'retry/orders/1/7'
  const asked = {
    tenant: 'shop',
    id,
    when: { inMs: 1_000 },
    key,
    payload,
    type: 'order',
    requestId: id,
  }
  assert.deepEqual(rest, asked)
  assert.deepEqual(headers, { trace: '1', 'event-type': 'order', 'retry-attempt': '1' })

  const second = fired({ trace: '1', ce_id: 'f1', ce_type: 't', 'retry-attempt': '1' })
  const failed = { topic: 'belfry.fired.shop', partition: 2, message: second }
  const next = again('shop', failed, 1_000)
  assert.deepEqual([next.id, next.type, attempt(second)], ['retry/f1', 't', 1])
  const dead = deadLetter(failed, new Error('no money'))
  assert.deepEqual(dead.headers, {
    trace: '1',
    'retry-attempt': '2',
    'dead-letter-reason': 'no money',
    'dead-letter-origin': 'belfry.fired.shop/2/7',
  })
})

test('refusals', () => {
  for (const [outcome, no] of [
    ['ACCEPTED', false],
    ['NOT_FOUND', true],
    ['UNKNOWN', false],
  ] as const) {
    const verdict = { tenant: 'demo', id: 'a', outcome, at: new Date() }
    assert.equal(refused(verdict), no)
    assert.equal(refused({ ...verdict, outcome: 'DUPLICATE', code: outcome }), no)
    assert.match(new RefusedError(verdict).message, /demo\/a/)
  }
})
