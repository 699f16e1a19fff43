import type { IHeaders } from 'kafkajs'
import { EVENT_TYPE, last } from './fired.js'

/** When a schedule fires: exactly one of these. Durations are milliseconds. */
export type When =
  /** Once, at an instant; one in the past fires at once. */
  | (Each & Once & { at: Date })
  /** Once, after a delay that counts from when Kafka has the request. */
  | (Each & Once & Debounced & { inMs: number })
  /** Again and again, with an interval. */
  | (Each & Recurring & { everyMs: number })
  /** By an expression such as `0 9 * * MON`. */
  | (Each & Recurring & { cron: string })
  /** By RFC 5545: lines DTSTART (with TZID), RRULE, RDATE, EXDATE. */
  | (Each & Omit<Recurring, 'timezone'> & { rrule: string })
  /** Once, when the next fire of the schedule of this id is acknowledged; it has to ask for that. */
  | (Each & Once & Depending & { afterAck: string })
  /** Once, when all of this group have fired and are acknowledged. */
  | (Each & Once & Depending & { afterGroup: string })

/** What every schedule may have. */
export interface Each {
  /** Moves each occurrence later by a fixed share of so long, so that not all come at once. */
  jitterMs?: number
  /** What becomes of occurrences that are later than `maxLatenessMs`. */
  misfire?: 'FIRE_ONCE' | 'FIRE_ALL' | 'SKIP'
  /** How late an occurrence still counts as in time. */
  maxLatenessMs?: number
}

/** What a schedule that fires once may have. */
export interface Once {
  /** The request changes nothing while the schedule waits, nor within so long after its fire. */
  throttleMs?: number
}

/** What a schedule after a delay may have. */
export interface Debounced {
  /** Each further request begins the delay anew, at most for so long after the first one. */
  maxWaitMs?: number
}

/** What a schedule that waits for an acknowledgement may have. */
export interface Depending {
  /** So long after the acknowledgement. */
  ackDelayMs?: number
  /** At this instant at the latest, acknowledged or not. */
  latestAt?: Date
}

/** What a schedule that recurs may have. */
export interface Recurring {
  /** IANA time zone that expressions are read in; UTC without it. */
  timezone?: string
  /** Leaves out the minutes of an expression of five fields: `* 0-5 * * *` is no night. */
  except?: string
  /** Nothing before it. */
  startAt?: Date
  /** Nothing after it. */
  endAt?: Date
  /** The schedule is over after so many fires. */
  maxFires?: number
  /** A calendar of the tenant, whose days off are left out or moved. */
  calendar?: string
  /** What becomes of an instant on a day off (`SKIP`). */
  onHoliday?: 'SKIP' | 'NEXT_BUSINESS_DAY' | 'PREVIOUS_BUSINESS_DAY'
}

/** Who, which, when and what. Key, payload and headers are those of the event. */
export interface Schedule {
  tenant: string
  id: string
  when: When
  /** Key of the event; none takes the group, else the id. */
  key?: Buffer | string | null
  /** Value of the event; none fires a null value. */
  payload?: Buffer | string | null
  /** They travel with the event. Names that begin with `belfry-` are belfry's own. */
  headers?: IHeaders
  /** Events of one group keep their due order. */
  group?: string
  /** Travels in the header `event-type` as well, where `parseFired` finds it. */
  type?: string
  /** What becomes of an occurrence while the one before is not acknowledged (`ALLOW`). */
  overlap?: 'ALLOW' | 'SKIP' | 'QUEUE_ONE' | 'QUEUE_ALL' | 'CANCEL_OTHER' | 'TERMINATE_OTHER'
  /** The group waits until this event is acknowledged. */
  serial?: boolean
  /** The group waits while so many of its events are not acknowledged. */
  concurrency?: number
  /** Longest wait for an acknowledgement (five minutes). */
  ackTimeoutMs?: number
  /** -9 to 9: while the tenant's events are held back, higher ones leave first; not in a group. */
  priority?: number
  /** An address that the event is posted to as well, or a JSON list of targets. */
  webhook?: string
  /** The request counts only for this version of the schedule; the verdict is CONFLICT otherwise. */
  expectedVersion?: number
  /** Kept in the history. */
  reason?: string
  /** Names the request: a repeat within an hour changes nothing. None takes a new one. */
  requestId?: string
  /** Leaves a schedule that exists alone, with the verdict CONFLICT. */
  createOnly?: boolean
}

export type Action = 'UPSERT' | 'CREATE' | 'CANCEL' | 'PAUSE' | 'RESUME' | 'TRIGGER' | 'ACK'

type Named<T> = T extends unknown ? keyof T : never

/** The header of each field that says when. */
const WHEN: Record<Named<When>, string> = {
  at: 'belfry-at',
  inMs: 'belfry-in',
  everyMs: 'belfry-every',
  cron: 'belfry-cron',
  rrule: 'belfry-rrule',
  timezone: 'belfry-timezone',
  except: 'belfry-except-cron',
  startAt: 'belfry-start-at',
  endAt: 'belfry-end-at',
  maxFires: 'belfry-max-fires',
  calendar: 'belfry-calendar',
  onHoliday: 'belfry-on-holiday',
  jitterMs: 'belfry-jitter',
  misfire: 'belfry-misfire',
  maxLatenessMs: 'belfry-max-lateness',
  maxWaitMs: 'belfry-max-wait',
  throttleMs: 'belfry-throttle',
  afterAck: 'belfry-after-ack',
  afterGroup: 'belfry-after-group',
  ackDelayMs: 'belfry-ack-delay',
  latestAt: 'belfry-latest-at',
}

/** The header of each other field that belfry reads; what is not here goes another way. */
const OTHERS: Partial<Record<keyof Schedule, string>> = {
  group: 'belfry-group',
  type: 'belfry-type',
  overlap: 'belfry-overlap',
  serial: 'belfry-serial',
  concurrency: 'belfry-concurrency',
  ackTimeoutMs: 'belfry-ack-timeout',
  priority: 'belfry-priority',
  webhook: 'belfry-webhook',
  expectedVersion: 'belfry-expected-version',
  reason: 'belfry-reason',
}

/** Headers of a record that asks for something about one schedule. */
export function asking(tenant: string, id: string, action: Action): IHeaders {
  return { 'belfry-tenant': tenant, 'belfry-id': id, 'belfry-action': action }
}

/** Headers of a record that asks for a schedule. */
export function headersOf(schedule: Schedule): IHeaders {
  const { tenant, id, when, type, createOnly, headers } = schedule
  const untold = type && last(headers, EVENT_TYPE) === undefined
  return {
    ...asking(tenant, id, createOnly ? 'CREATE' : 'UPSERT'),
    ...named(when, WHEN),
    ...named(schedule, OTHERS),
    ...(untold ? { [EVENT_TYPE]: type } : {}),
    ...headers,
  }
}

/** What is given of some fields, each under its header. */
function named<T extends object>(given: T, names: Partial<Record<string, string>>): IHeaders {
  const fields = given as Record<string, unknown>
  return Object.fromEntries(
    Object.entries(names)
      .filter(([field]) => told(fields[field]))
      .map(([field, header]) => [header, text(fields[field])]),
  )
}

function told(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '' && value !== false
}

/** A value as a header holds it. Durations are rounded up: what is scheduled never comes early. */
function text(value: unknown): string {
  if (value instanceof Date) return String(value.getTime())
  return String(typeof value === 'number' ? Math.ceil(value) : value)
}
