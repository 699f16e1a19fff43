import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { IHeaders } from 'kafkajs'
import { last } from './fired.js'
import type { Schedule } from './schedule.js'
import { open, seal } from './siv.js'

const KEY = 'encryption-key'
const KEY_BYTES = 64
/** A tenant and the number of its key: what a header says is never a path. */
const REFERENCE = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}\/k[1-9][0-9]{0,5}$/

/** A payload cannot be read: its key is gone, or it is not what was encrypted. */
export class NotDecryptedError extends Error {}

/** The keys of tenants, by references such as `shop/k2`. */
export interface Keys {
  /** The reference of a tenant's newest key; undefined where it has none. */
  current(tenant: string): string | undefined
  /** The 64 bytes of a key; undefined where it is not there any more, or never was. */
  named(reference: string): Buffer | undefined
}

/** Keys as files: `folder/shop/k1` has 64 random bytes. All languages' clients read the same folder. */
export class KeyFolder implements Keys {
  constructor(private readonly folder: string) {}

  current(tenant: string): string | undefined {
    if (!REFERENCE.test(`${tenant}/k1`)) return undefined
    const names = there(() => readdirSync(join(this.folder, tenant))) ?? []
    const numbers = names
      .filter((name) => REFERENCE.test(`${tenant}/${name}`))
      .map((name) => Number(name.slice(1)))
    return numbers.length === 0 ? undefined : `${tenant}/k${Math.max(...numbers)}`
  }

  named(reference: string): Buffer | undefined {
    if (!REFERENCE.test(reference)) {
      const shown = JSON.stringify(reference.slice(0, 200))
      throw new RangeError(`${shown} names no key: a tenant, a slash, k and a number do, as shop/k1`)
    }
    return there(() => readFileSync(join(this.folder, reference)))
  }
}

/**
 * Encrypts payloads by their tenants' newest keys, and decrypts them by any that is there.
 *
 * Kafka and belfry carry the bytes and never look into them. The cipher is AES-SIV (RFC 5297): the same
 * payload under the same key gives the same bytes, so a request that is repeated is UNCHANGED.
 */
export class Encryption {
  constructor(private readonly keys: Keys) {}

  /** A schedule with its payload encrypted, and one more header, which names the key. An empty payload
   * stays empty. */
  seal(schedule: Schedule): Schedule {
    const { tenant, payload, headers } = schedule
    if (!payload || payload.length === 0) return schedule
    const reference = this.keys.current(tenant)
    if (reference === undefined) throw new Error(`Tenant ${tenant} has no key`)
    const key = this.key(reference)
    const text = typeof payload === 'string' ? Buffer.from(payload) : payload
    const sealed = seal(key, text, Buffer.from(reference))
    return { ...schedule, payload: sealed, headers: { ...headers, [KEY]: reference } }
  }

  /** The payload of an event as it was before; that of one that nobody encrypted as it is. */
  open(event: { tenant?: string; value: Buffer | null; headers?: IHeaders }): Buffer | null {
    const { tenant, value, headers } = event
    const reference = last(headers, KEY)
    if (reference === undefined || !value || value.length === 0) return value
    // The writer of the record wrote this too: no other Keys than a folder has to doubt it.
    if (!REFERENCE.test(reference)) {
      throw new NotDecryptedError(`The record's header ${KEY} names no key`)
    }
    if (tenant !== undefined && tenant !== reference.split('/')[0]) {
      throw new NotDecryptedError(`${reference} is a key of another tenant than ${tenant}`)
    }
    const payload = open(this.key(reference), value, Buffer.from(reference))
    if (payload === undefined) {
      throw new NotDecryptedError(`The payload is not what was encrypted with ${reference}`)
    }
    return payload
  }

  private key(reference: string): Buffer {
    const key = this.keys.named(reference)
    if (key?.length !== KEY_BYTES) {
      const gone = 'is not there: it was shredded, or lies elsewhere'
      const has = key ? `has ${key.length} bytes: ${KEY_BYTES} are one` : gone
      throw new NotDecryptedError(`The key ${reference} ${has}`)
    }
    return key
  }
}

/** What is read of a file or a folder; undefined where it is not there. */
function there<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
