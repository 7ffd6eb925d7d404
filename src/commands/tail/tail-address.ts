// What the options of `pennon tail` ask for, as the address of a live view. Names of lanes and projects are left to the
// instance, which may be of another version.

import { err, ok, type Result } from '#core/result.ts'
import type { Config } from '../../config.ts'

export interface TailOptions {
  readonly url?: string
  readonly project: string
  readonly event?: readonly string[]
  readonly distinctId?: readonly string[]
  /** Each may be several, separated by commas. */
  readonly lane?: readonly string[]
  /** `key=value`; all of them have to hold. */
  readonly property?: readonly string[]
  readonly historical?: boolean
  /** False: without rejects. */
  readonly rejected: boolean
  readonly json?: boolean
}

export interface TailAddress {
  /** The address of the private API, without a slash at its end. */
  readonly instance: string
  readonly view: URL
}

/** @returns a line for a person when an option cannot be read. */
export function tailAddress(
  options: TailOptions,
  config: Pick<Config, 'host' | 'port' | 'adminPort'>,
): Result<TailAddress, string> {
  const instance = (options.url ?? ownAddress(config)).replace(/\/+$/, '')
  if (!/^https?:$/.test(URL.parse(instance)?.protocol ?? ''))
    return err(`--url is an address such as https://pennon.example, not ${instance}`)
  const query = queryOf(options)
  if (!query.ok) return query
  const path = `/api/projects/${encodeURIComponent(options.project)}/events/live/`
  return ok({ instance, view: new URL(`${instance}${path}?${query.value}`) })
}

function ownAddress({ host, port, adminPort }: Pick<Config, 'host' | 'port' | 'adminPort'>): string {
  const reached = ['0.0.0.0', '::'].includes(host) ? '127.0.0.1' : host
  return `http://${reached.includes(':') ? `[${reached}]` : reached}:${adminPort ?? port}`
}

function queryOf(options: TailOptions): Result<URLSearchParams, string> {
  const { event = [], distinctId = [], lane = [], property = [], historical, rejected } = options
  const query = new URLSearchParams()
  for (const [option, name, values] of [
    ['--event', 'event', event],
    ['--distinct-id', 'distinct_id', distinctId],
    // `historical` says nothing to an instance that is told the lanes.
    ['--lane', 'lane', lane.length > 0 && historical ? [...lane, 'historical'] : lane],
  ] as const) {
    // The instance would take it for one that is not there, and show everything.
    if (values.includes('')) return err(`${option} needs a value that is not empty.`)
    for (const value of values) query.append(name, value)
  }
  if (historical && lane.length === 0) query.set('historical', 'true')
  if (!rejected) query.set('rejected', 'false')
  const properties = property.map(equalityOf)
  if (properties.includes(null)) return err('--property is key=value, such as plan=pro.')
  if (properties.length > 0) query.set('properties', JSON.stringify(properties))
  return ok(query)
}

/** Values are compared as texts, so that `n=3` finds the number too. */
function equalityOf(text: string): { key: string; value: string } | null {
  const at = text.indexOf('=')
  return at < 1 ? null : { key: text.slice(0, at), value: text.slice(at + 1) }
}
