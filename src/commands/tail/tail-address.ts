// Turns the options of `pennon tail` into the address of a live view. Only the instance checks names of lanes and
// projects, since it may be of another version.

import { err, ok, type Result } from '#core/result.ts'
import { type AddressConfig, resolveInstanceAddress } from '../client/instance-address.ts'

export interface TailOptions {
  readonly host?: string
  readonly project: string
  readonly event?: readonly string[]
  readonly distinctId?: readonly string[]
  /** Each entry may name several lanes, separated by commas. */
  readonly lane?: readonly string[]
  /** `key=value`; all of them must match. */
  readonly property?: readonly string[]
  readonly historical?: boolean
  /** Whether to show rejects. */
  readonly rejected: boolean
  readonly json?: boolean
}

export interface TailAddress {
  /** The address of the private API, without a final slash. */
  readonly instance: string
  readonly view: URL
}

/** @returns a one-line message for people if an option is invalid. */
export function buildTailAddress(options: TailOptions, config: AddressConfig): Result<TailAddress, string> {
  const instance = resolveInstanceAddress(options.host, config)
  if (!instance.ok) return instance
  const query = buildQuery(options)
  if (!query.ok) return query
  const path = `/api/projects/${encodeURIComponent(options.project)}/events/live/`
  return ok({ instance: instance.value, view: new URL(`${instance.value}${path}?${query.value}`) })
}

function buildQuery(options: TailOptions): Result<URLSearchParams, string> {
  const { event = [], distinctId = [], lane = [], property = [], historical, rejected } = options
  const query = new URLSearchParams()
  for (const [option, name, values] of [
    ['--event', 'event', event],
    ['--distinct-id', 'distinct_id', distinctId],
    // An instance ignores the parameter `historical` when lanes are given, so send `historical` as a lane.
    ['--lane', 'lane', lane.length > 0 && historical ? [...lane, 'historical'] : lane],
  ] as const) {
    // Refuse empty values: the instance would treat them as absent, and show all events.
    if (values.includes('')) return err(`${option} must not be empty.`)
    for (const value of values) query.append(name, value)
  }
  if (historical && lane.length === 0) query.set('historical', 'true')
  if (!rejected) query.set('rejected', 'false')
  const properties = property.map(parseEquality)
  if (properties.includes(null)) return err('--property must be key=value, such as plan=pro.')
  if (properties.length > 0) query.set('properties', JSON.stringify(properties))
  return ok(query)
}

/** Splits `key=value`. The value stays text: it is compared as text, so that `n=3` also finds the number 3. */
function parseEquality(text: string): { key: string; value: string } | null {
  const at = text.indexOf('=')
  return at < 1 ? null : { key: text.slice(0, at), value: text.slice(at + 1) }
}
