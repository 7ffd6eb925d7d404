// Which export to fetch: the source, its days and its address. Holds no secrets, so it can be stored and shown.

import { isDeepStrictEqual } from 'node:util'
import { isJsonObject, type JsonObject, ownValue } from '#core/json.ts'
import { ImportConfigError } from '../records/import-source.ts'
import { type DayWindow, parseDay } from './fetch-windows.ts'

export const fetchSourceNames = ['mixpanel', 'amplitude', 'matomo', 'posthog', 's3', 'http'] as const
export type FetchSourceName = (typeof fetchSourceNames)[number]

/** Keys as in the options of `pennon import fetch`, with underscores. */
export interface FetchConfig {
  readonly source: FetchSourceName
  /** Null for `s3` and `http`, which have files and no days. */
  readonly range: DayWindow | null
  /** `us`, `eu` or `in`. */
  readonly region: string
  /** Replaces the region's address. */
  readonly host: string | null
  readonly project_id: string | null
  readonly site_id: string | null
  /** Days per call; null for the source's default. */
  readonly window_days: number | null
  /** For a contract with an unusual limit. */
  readonly calls_per_hour: number | null
  /** `s3://bucket/prefix`. */
  readonly bucket: string | null
  readonly prefix: string
  readonly s3_endpoint: string | null
  readonly s3_region: string | null
  readonly s3_path_style: boolean
  /** Path of a file that lists URLs. */
  readonly list: string | null
}

const keys = (
  'source from to region host project_id site_id window_days calls_per_hour ' +
  's3_url s3_endpoint s3_region s3_path_style list'
).split(' ')

/** @throws ImportConfigError with a message for the user. */
export function parseFetchConfig(value: unknown): FetchConfig {
  const object = value as JsonObject
  if (!isJsonObject(object)) throw new ImportConfigError('The configuration of a fetch must be an object.')
  const unknown = Object.keys(object).filter(key => !keys.includes(key))
  if (unknown.length > 0)
    throw new ImportConfigError(`There is no key ${unknown.join(', ')}. Keys: ${keys.join(', ')}.`)
  const source = readText(object, 'source') as FetchSourceName | null
  if (source === null || !fetchSourceNames.includes(source))
    throw new ImportConfigError(`source must be one of ${fetchSourceNames.join(', ')}.`)
  const region = readText(object, 'region') ?? 'us'
  if (!/^(us|eu|in)$/.test(region)) throw new ImportConfigError('region must be us, eu or in.')
  const config: FetchConfig = {
    source,
    range: readRange(object),
    region,
    host: readAddress(object, 'host'),
    project_id: readText(object, 'project_id'),
    site_id: readText(object, 'site_id'),
    window_days: readInteger(object, 'window_days', 365),
    calls_per_hour: readInteger(object, 'calls_per_hour', 1_000_000),
    ...parseBucket(readText(object, 's3_url')),
    s3_endpoint: readAddress(object, 's3_endpoint'),
    s3_region: readText(object, 's3_region'),
    s3_path_style: ownValue(object, 's3_path_style') === true,
    list: readText(object, 'list'),
  }
  const missing = needs[source].filter(key => config[key] === null).map(key => optionNames[key] ?? key)
  if (missing.length > 0) throw new ImportConfigError(`${source} needs ${missing.join(' and ')}.`)
  return config
}

const needs: Record<FetchSourceName, readonly (keyof FetchConfig)[]> = {
  mixpanel: ['range'],
  amplitude: ['range'],
  matomo: ['range', 'host', 'site_id'],
  posthog: ['range', 'project_id'],
  s3: ['bucket'],
  http: ['list'],
}
const optionNames: Partial<Record<keyof FetchConfig, string>> = { range: 'from and to', bucket: 's3_url' }

function readRange(object: JsonObject): DayWindow | null {
  const [from, to] = [readText(object, 'from'), readText(object, 'to')]
  if (from === null || to === null) return null
  parseDay(from, 'from')
  parseDay(to, 'to')
  return { from, to }
}

function parseBucket(url: string | null): Pick<FetchConfig, 'bucket' | 'prefix'> {
  if (url === null) return { bucket: null, prefix: '' }
  const parts = /^s3:\/\/([^/]+)\/?(.*)$/.exec(url)
  if (parts === null) throw new ImportConfigError('s3_url must be s3://BUCKET/PREFIX.')
  return { bucket: parts[1]!, prefix: parts[2]! }
}

function readText(object: JsonObject, key: string): string | null {
  const value = ownValue(object, key)
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

function readInteger(object: JsonObject, key: string, max: number): number | null {
  const text = readText(object, key)
  if (text === null) return null
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1 || value > max)
    throw new ImportConfigError(`${key} must be an integer from 1 to ${max}.`)
  return value
}

/** @param bound the folder's configuration, as JSON. @param asked the configuration of this call. */
export function formatOtherExport(folder: string, bound: string, asked: string): string {
  const [before, now] = [bound, asked].map(text => JSON.parse(text) as JsonObject) as [JsonObject, JsonObject]
  const keys = [...new Set([...Object.keys(before), ...Object.keys(now)])].toSorted()
  const changed = keys.filter(key => before[key] !== now[key])
  return (
    `${folder} holds files of another export: this call says ${formatDifferences(changed, now, before)}. ` +
    `Take another folder for it; to continue the earlier export, run pennon import fetch FOLDER without options.`
  )
}

/**
 * Refuses options without a source that differ from what the folder was begun with. Repeating a value is fine, also a
 * default.
 * @throws ImportConfigError
 */
export function checkNothingIgnored(folder: string, bound: JsonObject, asked: JsonObject): void {
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

/** As users type it. */
function formatOption(key: string, value: JsonObject[string] | undefined): string {
  const option = `--${key.replaceAll('_', '-')}`
  if (value === undefined || value === false) return `no ${option}`
  return value === true ? option : `${option} ${String(value)}`
}
