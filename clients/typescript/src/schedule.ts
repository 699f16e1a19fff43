import type { IHeaders } from 'kafkajs'
import { EVENT_TYPE, last } from './fired.js'

/** When a schedule fires: exactly one of these. Durations are milliseconds. */
export type When =
  /** Once, at an instant; one in the past fires at once. */
  | { at: Date }
  /** Once, after a delay that counts from when Kafka has the request. */
  | { inMs: number }
  /** Again and again, with an interval. */
  | (Recurring & { everyMs: number })
  /** By an expression such as `0 9 * * MON`. */
  | (Recurring & { cron: string })
  /** By RFC 5545: lines DTSTART (with TZID), RRULE, RDATE, EXDATE. */
  | (Omit<Recurring, 'timezone'> & { rrule: string })

/** What a schedule that recurs may have. */
export interface Recurring {
  /** IANA time zone that expressions are read in; UTC without it. */
  timezone?: string
  /** Leaves out the minutes of an expression of five fields: `* 0-5 * * *` is no night. */
  except?: string
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
  /** Names the request: a repeat within an hour changes nothing. None takes a new one. */
  requestId?: string
  /** Leaves a schedule that exists alone, with the verdict CONFLICT. */
  createOnly?: boolean
}

export type Action = 'UPSERT' | 'CREATE' | 'CANCEL' | 'PAUSE' | 'RESUME' | 'TRIGGER'

/** Headers of a record that asks for something about one schedule. */
export function asking(tenant: string, id: string, action: Action): IHeaders {
  return { 'belfry-tenant': tenant, 'belfry-id': id, 'belfry-action': action }
}

/** Headers of a record that asks for a schedule. */
export function headersOf(schedule: Schedule): IHeaders {
  const headers = {
    ...asking(schedule.tenant, schedule.id, schedule.createOnly ? 'CREATE' : 'UPSERT'),
    ...whenHeaders(schedule.when),
  }
  if (schedule.group) headers['belfry-group'] = schedule.group
  if (schedule.type) {
    headers['belfry-type'] = schedule.type
    if (last(schedule.headers, EVENT_TYPE) === undefined) headers[EVENT_TYPE] = schedule.type
  }
  return { ...headers, ...schedule.headers }
}

function whenHeaders(when: When): IHeaders {
  if ('at' in when) return { 'belfry-at': String(when.at.getTime()) }
  // What is scheduled never comes early.
  if ('inMs' in when) return { 'belfry-in': String(Math.ceil(when.inMs)) }
  const except = when.except ? { 'belfry-except-cron': when.except } : {}
  if ('rrule' in when) return { 'belfry-rrule': when.rrule, ...except }
  const zone = when.timezone ? { 'belfry-timezone': when.timezone } : {}
  if ('cron' in when) return { 'belfry-cron': when.cron, ...zone, ...except }
  return { 'belfry-every': String(Math.ceil(when.everyMs)), ...zone, ...except }
}
