import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { Encryption, KeyFolder, NotDecryptedError } from '../src/encryption.js'
import type { Schedule } from '../src/schedule.js'
import { open, seal } from '../src/siv.js'

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
    const headers = { 'encryption-key': reference }
    assert.throws(() => encryption.open({ value: Buffer.from('x'), headers }), NotDecryptedError)
  }
  assert.equal(encryption.open({ value: Buffer.from('as it is') })?.toString(), 'as it is')
  assert.equal(encryption.open({ value: null, headers: sealed.headers! }), null)

  rmSync(path, { recursive: true })
  assert.throws(() => encryption.open(event), NotDecryptedError)
})

test('the cipher is that of RFC 5297, A.1, whose keys have half the length', () => {
  const key = Buffer.from('fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff', 'hex')
  const text = Buffer.from('112233445566778899aabbccddee', 'hex')
  const datum = Buffer.from('101112131415161718191a1b1c1d1e1f2021222324252627', 'hex')
  const sealed = seal(key, text, datum)
  const found = '85632d07c6e8f37f950acd320a2ecc9340c02b9690c4dc04daef7f6afe5c'
  assert.equal(sealed.toString('hex'), found)
  assert.deepEqual(open(key, sealed, datum), text)
})
