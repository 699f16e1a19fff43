import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { Encryption, KeyFolder, NotDecryptedError } from '../src/encryption.js'
import type { Schedule } from '../src/schedule.js'

function folder(reference: string, key: Buffer): string {
  const path = mkdtempSync(join(tmpdir(), 'keys-'))
  mkdirSync(dirname(join(path, reference)))
  writeFileSync(join(path, reference), key)
  return path
}

function schedule(tenant: string, payload: Buffer | string): Schedule {
  return { tenant, id: 'a', when: { inMs: 0 }, payload, headers: { a: 'b' } }
}

test('the newest key of a folder encrypts, and once it is shredded nothing opens', () => {
  const path = folder('shop/k9', Buffer.alloc(64))
  const keys = new KeyFolder(path)
  const encryption = new Encryption(keys)
  writeFileSync(join(path, 'shop/k10'), Buffer.alloc(64, 1))
  for (const name of ['k11.new', 'other']) writeFileSync(join(path, 'shop', name), 'x')
  assert.equal(keys.current('shop'), 'shop/k10')
  const sealed = encryption.seal(schedule('shop', '4711'))
  assert.deepEqual(Object.keys(sealed.headers!), ['a', 'encryption-key'])
  const event = { value: sealed.payload as Buffer, headers: sealed.headers! }
  assert.equal(encryption.open(event)?.toString(), '4711')

  assert.equal(encryption.seal(schedule('nobody', '')).payload, '')
  for (const tenant of ['nobody', '..', 'a/b', '']) {
    assert.throws(() => encryption.seal(schedule(tenant, 'x')), /has no key/)
  }
  for (const reference of ['../k1', 'shop/k1/../k10', 'shop/k0', '/etc/passwd', '']) {
    assert.throws(() => keys.named(reference), /names no key/)
  }
  assert.equal(encryption.open({ value: Buffer.from('as it is') })?.toString(), 'as it is')
  assert.equal(encryption.open({ value: null, headers: sealed.headers! }), null)

  rmSync(path, { recursive: true })
  assert.throws(() => encryption.open(event), NotDecryptedError)
})
