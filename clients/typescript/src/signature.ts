import { createHmac } from 'node:crypto'
import type { IHeaders } from 'kafkajs'

export type Bytes = Buffer | string | null | undefined

/** What the header `belfry-signature` of a record has to hold; it is made last. */
export function signature(
  secret: Buffer | string,
  tenant: string,
  key: Bytes,
  value: Bytes,
  headers: Iterable<[string, Bytes]>,
): string {
  const hmac = createHmac('sha256', secret)
  const field = (given: Bytes): void => {
    const bytes = typeof given === 'string' ? Buffer.from(given) : given
    const size = Buffer.alloc(4, 0xff)
    if (bytes) size.writeUInt32BE(bytes.length)
    hmac.update(size)
    if (bytes) hmac.update(bytes)
  }
  field(tenant)
  field(key)
  field(value)
  for (const [name, given] of headers) {
    field(name)
    field(given)
  }
  return hmac.digest('hex')
}

/** Headers in the order in which KafkaJS writes them. */
export function* pairs(headers: IHeaders): Iterable<[string, Bytes]> {
  for (const [name, given] of Object.entries(headers)) {
    for (const value of Array.isArray(given) ? given : [given]) yield [name, value]
  }
}
