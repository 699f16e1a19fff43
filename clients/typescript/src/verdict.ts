const OUTCOMES = [
  ...['UNKNOWN', 'ACCEPTED', 'UPDATED', 'UNCHANGED', 'PAUSED', 'RESUMED', 'TRIGGERED', 'CANCELLED'],
  ...['NOT_FOUND', 'TOO_LATE', 'CONFLICT', 'DUPLICATE', 'REJECTED', 'FIRED', 'MISSED', 'COMPLETED'],
  ...['DELIVERED', 'FAILED'],
]
/** They tell of occurrences and deliveries, and answer no request. */
const TOLD = new Set(['FIRED', 'MISSED', 'COMPLETED', 'DELIVERED', 'FAILED'])
const REFUSALS = new Set(['NOT_FOUND', 'CONFLICT', 'TOO_LATE', 'REJECTED'])

/** What became of a request. */
export interface Verdict {
  tenant: string
  id: string
  /** `ACCEPTED`, `UPDATED`, `CANCELLED`, `REJECTED` …; `UNKNOWN` is newer than this client. */
  outcome: string
  requestId?: string
  fireId?: string
  version?: number
  at: Date
  /** The next due instant. */
  dueAt?: Date
  /** Stable, for programs. Of a `DUPLICATE` it is the first outcome. */
  code?: string
  /** For people. */
  reason?: string
  sourceTopic?: string
  sourcePartition?: number
  sourceOffset?: bigint
}

/** A request was answered, with a no. */
export class RefusedError extends Error {
  constructor(readonly verdict: Verdict) {
    const { outcome, code, tenant, id, reason } = verdict
    super(`${outcome} (${code ?? ''}) ${tenant}/${id}: ${reason ?? ''}`)
    this.name = 'RefusedError'
  }
}

/** Whether the answer is a no. */
export function refused(verdict: Verdict): boolean {
  return REFUSALS.has((verdict.outcome === 'DUPLICATE' ? verdict.code : verdict.outcome) ?? '')
}

/** Whether a lifecycle event is a verdict on a request. */
export function answers(verdict: Verdict): boolean {
  return !TOLD.has(verdict.outcome)
}

/**
 * Read a value of `belfry.lifecycle`: Avro, after either of belfry's two prefixes. The fields stand in
 * the order of the schema, and releases add theirs at the end, so no schema is looked up.
 * Throws RangeError for bytes that are no event.
 */
export function parseVerdict(value: Buffer): Verdict {
  const read = new Reader(value, start(value))
  const told = {
    tenant: read.text(),
    id: read.text(),
    outcome: OUTCOMES[Number(read.long())] ?? 'UNKNOWN',
    requestId: read.optional(read.text),
    fireId: read.optional(read.text),
    version: number(read.optional(read.long)),
    at: new Date(Number(read.long())),
    dueAt: date(read.optional(read.long)),
    code: read.optional(read.text),
    reason: read.optional(read.text),
  }
  read.optional(read.text) // target
  read.optional(read.long) // attempt
  return {
    ...told,
    sourceTopic: read.optional(read.text),
    sourcePartition: number(read.optional(read.long)),
    sourceOffset: read.optional(read.long),
  }
}

function start(value: Buffer): number {
  if (value[0] === 0) return 5 // Confluent's prefix and the schema's id
  if (value[0] === 0xc3 && value[1] === 0x01) return 10 // Avro's single object
  throw new RangeError('These bytes are no LifecycleEvent.')
}

function number(given: bigint | undefined): number | undefined {
  return given === undefined ? undefined : Number(given)
}

function date(given: bigint | undefined): Date | undefined {
  return given === undefined ? undefined : new Date(Number(given))
}

/** Avro's binary encoding. */
class Reader {
  constructor(
    private readonly bytes: Buffer,
    private at: number,
  ) {}

  long(): bigint {
    let coded = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.bytes.readUInt8(this.at++)
      coded |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return BigInt.asIntN(64, (coded >> 1n) ^ -(coded & 1n))
    }
    throw new RangeError('A number has more than 64 bits.')
  }

  text(): string {
    const end = Number(this.long()) + this.at
    if (end < this.at || end > this.bytes.length) throw new RangeError('A text is cut short.')
    const text = this.bytes.toString('utf8', this.at, end)
    this.at = end
    return text
  }

  optional<T>(read: (this: Reader) => T): T | undefined {
    return this.long() === 0n ? undefined : read.call(this)
  }
}
