// Which export to fetch: the source, its days and its address. Holds no secrets, so it can be stored and shown.

import { isDeepStrictEqual } from 'node:util'
import { getOwnValue, isJsonObject, type JsonObject } from '#core/json.ts'
import { ImportConfigError } from '../records/import-source.ts'
import { parseDay } from './fetch-windows.ts'

const fetchSourceNames = ['mixpanel', 'amplitude', 'matomo', 'posthog', 's3', 'http'] as const
type FetchSourceName = (typeof fetchSourceNames)[number]

/** How each key is read. Keys are the options of `pennon import fetch`, with underscores; an absent key gives null. */
const readers = {
  source: readSource,
  from: readDay,
  /** The last day, inclusive. */
  to: readDay,
  region: readRegion,
  /** Replaces the region's address. */
  host: readAddress,
  project_id: readText,
  site_id: readText,
  /** Days per call; null for the source's default. */
  window_days: createIntegerReader(365),
  /** For a contract with an unusual limit. */
  calls_per_hour: createIntegerReader(1_000_000),
  s3_url: readBucket,
  s3_endpoint: readAddress,
  s3_region: readText,
  s3_path_style: (object: JsonObject, key: string) => getOwnValue(object, key) === true,
  /** Path of a file that lists URLs. */
  list: readText,
}

type Key = keyof typeof readers
export type FetchConfig = { readonly [K in Key]: ReturnType<(typeof readers)[K]> }

/** The keys that each source requires in addition to its days. */
const needs: Record<FetchSourceName, readonly Key[]> = {
  mixpanel: [],
  amplitude: [],
  matomo: ['host', 'site_id'],
  posthog: ['project_id'],
  s3: ['s3_url'],
  http: ['list'],
}

/** @throws ImportConfigError with a message for the user. */
export function parseFetchConfig(value: unknown): FetchConfig {
  const object = value as JsonObject
  if (!isJsonObject(object)) throw new ImportConfigError('The configuration of a fetch must be an object.')
  const unknown = Object.keys(object).filter(key => !Object.hasOwn(readers, key))
  if (unknown.length > 0)
    throw new ImportConfigError(`There is no key ${unknown.join(', ')}. Keys: ${Object.keys(readers).join(', ')}.`)
  const entries = Object.entries(readers).map(([key, read]) => [key, read(object, key)])
  const config = Object.fromEntries(entries) as FetchConfig
  const { source, from, to } = config
  const isFiles = source === 's3' || source === 'http'
  const missing = needs[source].filter(key => config[key] === null)
  const all = [...(isFiles || (from !== null && to !== null) ? [] : ['from and to']), ...missing]
  if (all.length > 0) throw new ImportConfigError(`${source} needs ${all.join(' and ')}.`)
  return config
}

function readSource(object: JsonObject, key: string): FetchSourceName {
  const source = fetchSourceNames.find(name => name === readText(object, key))
  if (source === undefined) throw new ImportConfigError(`${key} must be one of ${fetchSourceNames.join(', ')}.`)
  return source
}

function readDay(object: JsonObject, key: string): string | null {
  const day = readText(object, key)
  if (day !== null) parseDay(day, key)
  return day
}

function readRegion(object: JsonObject, key: string): string {
  const region = readText(object, key) ?? 'us'
  if (!/^(us|eu|in)$/.test(region)) throw new ImportConfigError(`${key} must be us, eu or in.`)
  return region
}

function readBucket(object: JsonObject, key: string): { readonly bucket: string; readonly prefix: string } | null {
  const url = readText(object, key)
  if (url === null) return null
  const parts = /^s3:\/\/([^/]+)\/?(.*)$/.exec(url)
  if (parts === null) throw new ImportConfigError(`${key} must be s3://BUCKET/PREFIX.`)
  return { bucket: parts[1]!, prefix: parts[2]! }
}

function readText(object: JsonObject, key: string): string | null {
  const value = getOwnValue(object, key)
  if (value === undefined || value === null) return null
  if (typeof value === 'string' && value !== '') return value
  if (typeof value === 'number') return String(value)
  throw new ImportConfigError(`${key} must be text.`)
}

/** Refuses a password in an address, since it would be stored with the configuration. */
function readAddress(object: JsonObject, key: string): string | null {
  const text = readText(object, key)
  if (text === null) return null
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.search !== '')
    throw new ImportConfigError(`${key} must be an address such as https://example.com, without a password.`)
  return text
}

function createIntegerReader(max: number) {
  return (object: JsonObject, key: string): number | null => {
    const text = readText(object, key)
    const value = Number(text)
    if (text !== null && (!Number.isInteger(value) || value < 1 || value > max))
      throw new ImportConfigError(`${key} must be an integer from 1 to ${max}.`)
    return text === null ? null : value
  }
}

/** @param bound the folder's configuration, as JSON. @param asked the configuration of this call. */
export function describeExportMismatch(folder: string, bound: string, asked: string): string {
  const [before, now] = [bound, asked].map(text => JSON.parse(text) as JsonObject) as [JsonObject, JsonObject]
  const keys = Object.keys({ ...before, ...now }).toSorted()
  const changed = keys.filter(key => before[key] !== now[key])
  return (
    `${folder} holds files of another export: this call says ${formatDifferences(changed, now, before)}. ` +
    `Take another folder for it; to continue the earlier export, run pennon import fetch FOLDER without options.`
  )
}

/**
 * For a call without --source: refuses options that differ from those with which the folder was created. Repeated values
 * and defaults are allowed.
 * @throws ImportConfigError
 */
export function checkNoOptionIgnored(folder: string, bound: JsonObject, asked: JsonObject): void {
  const before = parseFetchConfig(bound)
  const ignored = Object.entries(asked)
    .filter(([key, value]) => !isDeepStrictEqual(parseFetchConfig({ ...bound, [key]: value }), before))
    .map(([key]) => key)
  if (ignored.length === 0) return
  const given = Object.entries(asked).map(([key, value]) => formatOption(key, value))
  throw new ImportConfigError(
    `Without --source the fetch into ${folder} continues as it was started, but this call says ${formatDifferences(ignored, asked, bound)}. ` +
      `Omit these options to continue, or start another export, with all its options, in another folder: ` +
      `pennon import fetch OTHER --source ${String(bound.source)} ${given.join(' ')}`,
  )
}

function formatDifferences(keys: readonly string[], now: JsonObject, before: JsonObject): string {
  return keys.map(key => `${formatOption(key, now[key])} instead of ${formatOption(key, before[key])}`).join(', ')
}

/** The option as users type it. */
function formatOption(key: string, value: JsonObject[string] | undefined): string {
  const option = `--${key.replaceAll('_', '-')}`
  if (value === undefined || value === false) return `no ${option}`
  return value === true ? option : `${option} ${String(value)}`
}
