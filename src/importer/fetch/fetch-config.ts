// Which export to fetch: the source, its days and its address. Holds no secrets, so it can be stored and shown.

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

const keys = [
  'source',
  'from',
  'to',
  'region',
  'host',
  'project_id',
  'site_id',
  'window_days',
  'calls_per_hour',
  's3_url',
  's3_endpoint',
  's3_region',
  's3_path_style',
  'list',
]
const windowDaysMax = 365

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
  const { bucket, prefix } = parseBucket(readText(object, 's3_url'))
  const region = readText(object, 'region') ?? 'us'
  if (!/^(us|eu|in)$/.test(region)) throw new ImportConfigError('region must be us, eu or in.')
  const config: FetchConfig = {
    source,
    range: readRange(object),
    region,
    host: readAddress(object, 'host'),
    project_id: readText(object, 'project_id'),
    site_id: readText(object, 'site_id'),
    window_days: readInteger(object, 'window_days', windowDaysMax),
    calls_per_hour: readInteger(object, 'calls_per_hour', 1_000_000),
    ...{ bucket, prefix },
    s3_endpoint: readAddress(object, 's3_endpoint'),
    s3_region: readText(object, 's3_region'),
    s3_path_style: ownValue(object, 's3_path_style') === true,
    list: readText(object, 'list'),
  }
  checkRequiredOptions(config)
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

function checkRequiredOptions(config: FetchConfig): void {
  const missing = needs[config.source].filter(key => config[key] === null).map(key => optionNames[key] ?? key)
  if (missing.length > 0) throw new ImportConfigError(`${config.source} needs ${missing.join(' and ')}.`)
}

function readRange(object: JsonObject): DayWindow | null {
  const [from, to] = [readText(object, 'from'), readText(object, 'to')]
  if (from === null || to === null) return null
  parseDay(from, 'from')
  parseDay(to, 'to')
  return { from, to }
}

function parseBucket(url: string | null): { readonly bucket: string | null; readonly prefix: string } {
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
