import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { IHeaders, KafkaMessage, Message, PartitionMetadata } from 'kafkajs'
import { createPartitioner } from '../src/client.js'
import { Encryption, NotDecryptedError } from '../src/encryption.js'
import { parseFired } from '../src/fired.js'
import { again, deadLetter, delayMs } from '../src/retry.js'
import { asking } from '../src/schedule.js'
import { signature } from '../src/signature.js'
import { parseVerdict } from '../src/verdict.js'

// What belfry's own code says, for the clients of all languages.
const vectors = JSON.parse(readFileSync('../vectors.json', 'utf8'))

function bytes(spaced: string | null): Buffer | null {
  return spaced === null ? null : Buffer.from(spaced.replaceAll(' ', ''), 'hex')
}

test('requests go to their home, whatever their key', () => {
  const partition = createPartitioner()
  for (const each of vectors['partitions']) {
    const partitionMetadata = Array.from(
      { length: each.partitions },
      (_, partitionId) => ({ partitionId, leader: 1 }) as PartitionMetadata,
    )
    const headers = asking(each.tenant, 'any', 'UPSERT')
    const message: Message = { key: "the event's own key", value: null, headers }
    assert.equal(partition({ topic: 't', partitionMetadata, message }), each.partition)
  }
})

test('signatures', () => {
  for (const each of vectors['signatures']) {
    const headers = each.headers.map(([name, given]: [string, string | null]) => [
      name,
      bytes(given),
    ])
    const found = signature(each.secret, each.tenant, bytes(each.key), bytes(each.value), headers)
    assert.equal(found, bytes(each.signature)?.toString('hex'))
  }
})

test('verdicts', () => {
  for (const { value, verdict: wanted } of vectors['verdicts']) {
    const whole = bytes(value)!
    const found = parseVerdict(whole)
    assert.deepEqual(
      [found.tenant, found.id, found.outcome, found.at.getTime()],
      [wanted.tenant, wanted.schedule_id, wanted.outcome, wanted.at],
    )
    assert.deepEqual(
      [
        found.requestId,
        found.fireId,
        found.version,
        found.dueAt?.getTime(),
        found.code,
        found.reason,
      ],
      ['request_id', 'fire_id', 'version', 'due_at', 'code', 'reason'].map(
        (n) => wanted[n] ?? undefined,
      ),
    )
    assert.deepEqual(
      [found.sourceTopic, found.sourcePartition, found.sourceOffset && Number(found.sourceOffset)],
      ['source_topic', 'source_partition', 'source_offset'].map((n) => wanted[n] ?? undefined),
    )
    // A field that a later release adds changes nothing, and half an event is none.
    assert.deepEqual(parseVerdict(Buffer.concat([whole, Buffer.alloc(1)])), found)
    for (let size = 0; size < whole.length; size++) {
      assert.throws(() => parseVerdict(whole.subarray(0, size)), RangeError)
    }
  }
})

function headersOf(given: [string, string | null][]): IHeaders {
  const headers: IHeaders = {}
  for (const [name, value] of given) {
    // A header that is null is one that says nothing.
    const more = bytes(value) ?? undefined
    const before = headers[name]
    headers[name] = before === undefined ? more : ([before, more].flat() as Buffer[])
  }
  return headers
}

test('events', () => {
  for (const { headers: given, event: wanted } of vectors['events']) {
    const headers = headersOf(given)
    const message = { key: null, value: null, headers, offset: '0', timestamp: '0', attributes: 0 }
    const found = parseFired(message as KafkaMessage)!
    assert.deepEqual(
      [found.fireId, found.id, found.scheduledAt.getTime(), found.occurrence, found.missed],
      [wanted.fire_id, wanted.schedule_id, wanted.scheduled_at_ms, wanted.occurrence, wanted.missed],
    )
    assert.deepEqual(
      [found.tenant, found.group, found.type, found.version, found.backfill, found.redriven],
      ['tenant', 'group', 'event_type', 'version', 'backfill', 'redriven'].map(
        (n) => wanted[n] ?? undefined,
      ),
    )
    const source = found.source && { ...found.source, offset: Number(found.source.offset) }
    assert.deepEqual(source ?? null, wanted.source)
    const { sha256: digest, bytes: size_bytes, encryptedFor } = found.claim ?? {}
    const claim = found.claim && { digest, size_bytes, encrypted_for: encryptedFor ?? null }
    assert.deepEqual(claim ?? null, wanted.claim)
  }
})

test('encrypted payloads', () => {
  for (const each of vectors['encrypted']) {
    const keys = { current: () => each.reference, named: (given: string) => named(each, given) }
    const encryption = new Encryption(keys)
    const value = bytes(each.sealed)!
    const event = { tenant: each.tenant, value, headers: { 'encryption-key': each.names } }
    if (each.payload === null) {
      assert.throws(() => encryption.open(event), NotDecryptedError)
      continue
    }
    const payload = bytes(each.payload)!
    assert.deepEqual(encryption.open(event), payload)
    const asked = encryption.seal({ tenant: each.tenant, id: 'a', when: { inMs: 0 }, payload })
    assert.deepEqual(asked.payload, value)
    assert.deepEqual(asked.headers, { 'encryption-key': each.reference })
  }
})

function named(vector: { key: string; reference: string }, given: string): Buffer | undefined {
  return given === vector.reference ? bytes(vector.key)! : undefined
}

test('retries of events', () => {
  assert.notEqual(vectors['retries'].length, 0)
  for (const { topic, key, headers, retry: wanted } of vectors['retries']) {
    const given = { key: bytes(key), value: null, headers: headersOf(headers), offset: '0' }
    const failed = { topic, partition: 0, message: given as KafkaMessage }
    const found = again(wanted.tenant, failed, 1_000)
    assert.deepEqual(
      [found.tenant, found.id, found.requestId],
      [wanted.tenant, wanted.id, wanted.request_id],
    )
    assert.deepEqual(found.key, bytes(wanted.key))
    assert.deepEqual(found.headers, Object.fromEntries(wanted.headers))
    assert.deepEqual(deadLetter(failed, new Error('no money')).key, bytes(wanted.key))
  }
})

test('waits', () => {
  for (const each of vectors['waits']) {
    const { first_ms: firstMs, factor, most_ms: mostMs, attempts } = each
    const found = delayMs({ firstMs, factor, mostMs, attempts }, each.failed)
    assert.equal(found, each.delay_ms ?? undefined)
  }
})
