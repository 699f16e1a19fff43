import type { IHeaders, KafkaMessage } from 'kafkajs'

export const EVENT_TYPE = 'event-type'
export const ATTEMPT = 'retry-attempt'
/** Attributes of a CloudEvent that belfry makes anew for each fire. */
const MADE = new Set(['ce_specversion', 'ce_id', 'ce_source', 'ce_type', 'ce_time'])

/** A place in the topic of requests. */
export interface Source {
  topic: string
  partition: number
  offset: bigint
}

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
  /** Where its request lies; undefined unless the tenant's policy says `source_header`. */
  source?: Source
  key: Buffer | null
  /** The payload, unless the tenant's policy asks for envelopes. */
  value: Buffer | null
  headers: IHeaders
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
  const source = parseSource(last(headers, 'belfry-source') ?? '')
  const schedule = { id, tenant, group, type, version, source }
  return { ...schedule, fireId, scheduledAt, occurrence, missed, key, value, headers }
}

/** Read `topic/partition/offset`; undefined for anything else. */
export function parseSource(text: string): Source | undefined {
  const [, topic, partition, offset] = /^([^/]+)\/([0-9]+)\/([0-9]+)$/.exec(text) ?? []
  if (topic === undefined || partition === undefined || offset === undefined) return undefined
  return { topic, partition: Number(partition), offset: BigInt(offset) }
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
