import type { IHeaders, KafkaMessage } from 'kafkajs'

export const EVENT_TYPE = 'event-type'
export const ATTEMPT = 'retry-attempt'
/** Attributes of a CloudEvent that belfry makes anew for each fire. */
const MADE = new Set(['ce_specversion', 'ce_id', 'ce_source', 'ce_type', 'ce_time'])

/** A fired record and what its headers say. */
export interface FiredEvent {
  /** The same for every attempt to fire this occurrence: deduplicate by it. */
  fireId: string
  id: string
  /** The instant by the rule. */
  scheduledAt: Date
  /** 0, 1, 2 …; -1 is an extra one that a TRIGGER asked for. */
  occurrence: number
  /** How many further occurrences this one stands for. */
  missed: number
  /** That of a CloudEvent, else that of the header `event-type`, else the schedule's. */
  type?: string
  /** The schedule's tenant and group, and which version of it fired. */
  tenant?: string
  group?: string
  version?: number
  /** Where its request lies, if the tenant's policy says `source_header` and belfry knows. */
  source?: Source
  /** The id of the job, for what a backfill fires of the past. */
  backfill?: string
  /** For an event that was sent again: the name of the redrive, `@` and the first one's offset. */
  redriven?: string
  /** Where its payload lies, if not in the value. */
  claim?: Claim
  key: Buffer | null
  /** The payload, unless the tenant's policy asks for envelopes. */
  value: Buffer | null
  headers: IHeaders
}

/** Where a request lies. */
export interface Source {
  topic: string
  partition: number
  offset: bigint
}

/** A payload that lies elsewhere: in the store's folder of its tenant, as `<2 digits>/<sha256>`. */
export interface Claim {
  /** Of what is stored, in hexadecimal digits: its name. */
  sha256: string
  /** How long it is there. */
  bytes: number
  /** The schedule, as `tenant/id`, that a worker has encrypted it for. */
  encryptedFor?: string
}

/** Read a fired record; undefined for a record that belfry did not fire. */
export function parseFired(message: KafkaMessage): FiredEvent | undefined {
  const { key, value, headers = {} } = message
  const fireId = last(headers, 'belfry-fire-id')
  const id = last(headers, 'belfry-schedule-id')
  const scheduledAt = new Date(last(headers, 'belfry-scheduled-at') ?? NaN)
  const occurrence = Number.parseInt(last(headers, 'belfry-occurrence') ?? '', 10)
  if (!fireId || !id || Number.isNaN(scheduledAt.getTime()) || Number.isNaN(occurrence)) {
    return undefined
  }
  const missed = Number(last(headers, 'belfry-missed') ?? 0)
  const type =
    last(headers, 'ce_type') ?? last(headers, EVENT_TYPE) ?? last(headers, 'belfry-schedule-type')
  const [tenant, group] = [last(headers, 'belfry-schedule-tenant'), last(headers, 'belfry-schedule-group')]
  const told = last(headers, 'belfry-schedule-version')
  const version = told === undefined ? undefined : Number(told)
  const schedule = { id, tenant, group, type, version, source: sourceOf(headers) }
  const [backfill, redriven] = [last(headers, 'belfry-backfill'), last(headers, 'belfry-redriven')]
  const fire = { fireId, scheduledAt, occurrence, missed, backfill, redriven }
  return { ...schedule, ...fire, claim: claimOf(headers), key, value, headers }
}

function sourceOf(headers: IHeaders): Source | undefined {
  const told = last(headers, 'belfry-source') ?? ''
  const [, topic, partition, offset] = /^([^/]+)\/(\d{1,9})\/(\d{1,18})$/.exec(told) ?? []
  if (!topic || !partition || !offset) return undefined
  return { topic, partition: Number(partition), offset: BigInt(offset) }
}

function claimOf(headers: IHeaders): Claim | undefined {
  const sha256 = last(headers, 'claim-check-sha256') ?? ''
  const bytes = last(headers, 'claim-check-bytes') ?? ''
  if (!/^[0-9a-f]{64}$/.test(sha256) || !/^\d{1,15}$/.test(bytes)) return undefined
  const encryptedFor = last(headers, 'claim-check-encrypted')
  return { sha256, bytes: Number(bytes), ...(encryptedFor === undefined ? {} : { encryptedFor }) }
}

/** The last header of a name as text: belfry puts its own after the user's. */
export function last(headers: IHeaders | undefined, name: string): string | undefined {
  const given = headers?.[name]
  return (Array.isArray(given) ? given.at(-1) : given)?.toString()
}

/** The user's headers: without belfry's, and without the CloudEvent that belfry made. */
export function ownHeaders(headers: IHeaders = {}): IHeaders {
  const fireId = last(headers, 'belfry-fire-id')
  const made = fireId !== undefined && last(headers, 'ce_id') === fireId
  return Object.fromEntries(
    Object.entries(headers)
      .filter(([name]) => !name.toLowerCase().startsWith('belfry-') && name !== ATTEMPT)
      .filter(([name]) => !(made && MADE.has(name)))
      // KafkaJS reads headers that are null, and cannot write them.
      .map(([name, given]) => [name, given ?? '']),
  )
}
