// Reads the environment into a frozen Config, from one table of all settings with default, unit and meaning. `pennon config`
// prints the table with the origin of each value; an unknown PENNON_* name is refused with the name that was probably meant.

import { findAbbreviatedName, findIntendedName } from '#core/nearest-name.ts'
import { err, ok, type Result } from '#core/result.ts'
import { type LogLevel, logLevels } from '#telemetry/log.ts'
import { inDocs, pennonCommand } from './distribution.ts'
import {
  bytesFrom,
  oneOf,
  orNull,
  parseBytes,
  parseEncryptionKeys,
  parseEventsPassword,
  parseHttpUrl,
  parsePath,
  parsePersonalKey,
  parsePort,
  parsePostgresUrl,
  parseProjectKey,
  parseProxies,
  parsePublicUrl,
  parseSchema,
  parseSwitch,
  parseText,
  wholeNumber,
} from './setting-values.ts'

export interface Config {
  /** Address of the instance that commands call, as typed; null for the instance that these settings would start. */
  readonly instance: string | null
  readonly host: string
  readonly port: number
  /** Null when the private API and `/metrics` are on `port` too. */
  readonly adminPort: number | null
  /** The read-only port for dashboards; null for none. */
  readonly eventsPort: number | null
  /** Null only without the port for dashboards. */
  readonly eventsPassword: string | null
  /** Absolute path. */
  readonly dataFolder: string
  /** Null when the state is in the data folder. */
  readonly databaseUrl: string | null
  /** The schema of our tables in that database; null means `pennon`. */
  readonly databaseSchema: string | null
  /** A replica for evaluations to read from; null when they read from the primary. */
  readonly databaseReadUrl: string | null
  /** Null for the embedded engine. */
  readonly clickhouseUrl: string | null
  /** Absolute path; null for the installed data, if any. */
  readonly geoipDatabase: string | null
  readonly projectKey: string | null
  readonly personalKey: string | null
  /** 64 hexadecimal digits each; when empty, the data folder's key file is used. */
  readonly encryptionKeys: readonly string[]
  /** CIDR blocks or the words `loopback` and `private`. */
  readonly trustedProxies: readonly string[]
  /** The URL at which clients reach the instance, without a final slash; null to take it from each request. */
  readonly publicUrl: string | null
  /** Whether `/metrics` requires a key from loopback too. */
  readonly metricsRequireKey: boolean
  readonly unknownKeys: 'reject' | 'accept'
  /** Whether events that are not a historical migration are answered 200 and discarded. */
  readonly importOnly: boolean
  readonly frontProcesses: number
  readonly logRetentionHours: number
  readonly logBytesMax: number
  readonly rejectRetentionDays: number
  readonly freeBytesMin: number
  readonly queryTimeoutSeconds: number
  /** Live events that are at least this many days old are treated as imports; null for never. */
  readonly rerouteOlderThanDays: number | null
  readonly hotKeyEventsPerMinute: number | null
  readonly logLevel: LogLevel
}

interface Setting<T> {
  readonly variable: string
  readonly fallback: string
  readonly meaning: string
  readonly secret?: true
  /** Returns undefined for text that is not a value of this setting. */
  readonly parse: (text: string) => T | undefined
  /** Describes a valid value, for the error message. */
  readonly expects: string
}

function setting<T>(
  variable: string,
  fallback: string,
  expects: string,
  parse: (text: string) => T | undefined,
  meaning: string,
  secret?: true,
): Setting<T> {
  return { variable, fallback, expects, parse, meaning, ...(secret && { secret }) }
}

const settings: { readonly [K in keyof Config]: Setting<Config[K]> } = {
  instance: setting(
    'PENNON',
    '',
    'a URL such as https://pennon.example',
    orNull(parseText),
    'URL of the running instance for flags, events, tail and import; default: from HOST and PORT',
  ),
  port: setting('PORT', '8000', 'a port from 0 to 65535', parsePort, 'public HTTP port'),
  host: setting(
    'HOST',
    '127.0.0.1',
    'an IP address or host name to listen on',
    parseText,
    'address that the HTTP port listens on',
  ),
  adminPort: setting(
    'PENNON_ADMIN_PORT',
    '',
    'a port from 0 to 65535, or nothing',
    orNull(parsePort),
    'if set: port of the private API and /metrics; the public port then serves SDKs only',
  ),
  eventsPort: setting(
    'PENNON_EVENTS_PORT',
    '',
    'a port from 0 to 65535, or nothing',
    orNull(parsePort),
    'if set: read-only ClickHouse HTTP port for dashboards, with one user per project (project_1)',
  ),
  eventsPassword: setting(
    'PENNON_EVENTS_PASSWORD',
    '',
    '16 to 200 printable characters without spaces, or nothing',
    orNull(parseEventsPassword),
    'password of all users of PENNON_EVENTS_PORT',
    true,
  ),
  dataFolder: setting('PENNON_DATA', './data', 'a folder', parsePath, 'folder of the embedded stores'),
  databaseUrl: setting(
    'DATABASE_URL',
    '',
    'postgres://user:password@host:5432/database',
    orNull(parsePostgresUrl),
    'PostgreSQL database for the state, instead of the data folder',
    true,
  ),
  databaseSchema: setting(
    'PENNON_DATABASE_SCHEMA',
    '',
    'lower-case letters, digits and _, not starting with pg_',
    orNull(parseSchema),
    'PostgreSQL schema of the tables; default: pennon',
  ),
  databaseReadUrl: setting(
    'DATABASE_READ_URL',
    '',
    'postgres://user:password@host:5432/database',
    orNull(parsePostgresUrl),
    'PostgreSQL read replica, for flag evaluation',
    true,
  ),
  clickhouseUrl: setting(
    'CLICKHOUSE_URL',
    '',
    'http(s)://user:password@host:8123/database',
    orNull(parseHttpUrl),
    'ClickHouse for events, instead of the embedded one',
    true,
  ),
  geoipDatabase: setting(
    'GEOIP_DATABASE',
    '',
    'the path of a MaxMind City file',
    orNull(parsePath),
    'MaxMind City file (.mmdb) for locations of IP addresses, instead of the installed GeoLite2 data',
  ),
  projectKey: setting(
    'PENNON_PROJECT_KEY',
    '',
    'up to 64 ASCII characters, not starting with phx_ or phs_',
    orNull(parseProjectKey),
    'first start: API key of the first project; generated if not set',
  ),
  personalKey: setting(
    'PENNON_PERSONAL_KEY',
    '',
    'phx_ followed by at least 20 characters',
    orNull(parsePersonalKey),
    'first start: personal API key with all scopes; generated and shown once if not set',
    true,
  ),
  encryptionKeys: setting(
    'PENNON_ENCRYPTION_KEY',
    '',
    '64 hexadecimal digits (openssl rand -hex 32), or several such keys separated by commas',
    parseEncryptionKeys,
    'encrypts flag payloads; the first key encrypts, all keys decrypt; default: a key file in the data folder',
    true,
  ),
  trustedProxies: setting(
    'PENNON_TRUSTED_PROXIES',
    'loopback,private',
    'loopback, private, none, or CIDR blocks, separated by commas',
    parseProxies,
    'proxies whose forwarding headers are trusted for $ip, limits, logs and page URLs',
  ),
  publicUrl: setting(
    'PENNON_PUBLIC_URL',
    '',
    'http(s)://host[:port][/path], without a query',
    orNull(parsePublicUrl),
    'public URL, for `next` in lists and links to sign in; default: taken from each request',
  ),
  metricsRequireKey: setting(
    'PENNON_METRICS_REQUIRE_KEY',
    'false',
    'true or false',
    parseSwitch,
    'true: /metrics requires a personal key even from loopback, e.g. behind a local proxy',
  ),
  unknownKeys: setting(
    'PENNON_UNKNOWN_KEYS',
    'reject',
    'reject or accept',
    oneOf(['reject', 'accept'] as const),
    'reject: capture with an unknown project key is 401; accept: 200 and the events are dropped',
  ),
  importOnly: setting(
    'PENNON_IMPORT_ONLY',
    'false',
    'true or false',
    parseSwitch,
    'true: accept only historical migrations; other events are answered 200 and discarded',
  ),
  frontProcesses: setting(
    'PENNON_FRONT_PROCESSES',
    '1',
    'a number from 1 to 64',
    wholeNumber(1, 64),
    'HTTP processes on one port',
  ),
  logRetentionHours: setting(
    'PENNON_LOG_RETENTION_HOURS',
    '24',
    'hours, from 0 to 8760',
    wholeNumber(0, 8760),
    'retention of processed log records',
  ),
  logBytesMax: setting(
    'PENNON_LOG_MAX_BYTES',
    '10GiB',
    'at least 64MiB, like 512MiB or 10GiB',
    bytesFrom(64 * 2 ** 20),
    'log size at which capture returns 503',
  ),
  rejectRetentionDays: setting(
    'PENNON_REJECT_RETENTION_DAYS',
    '30',
    'days, from 1 to 3650',
    wholeNumber(1, 3650),
    'retention of rejected events',
  ),
  freeBytesMin: setting(
    'PENNON_MIN_FREE_BYTES',
    '1GiB',
    'bytes, like 512MiB or 1GiB',
    parseBytes,
    'free disk space below which capture returns 503; it resumes automatically',
  ),
  queryTimeoutSeconds: setting(
    'PENNON_QUERY_TIMEOUT_SECONDS',
    '8',
    'seconds, from 1 to 600',
    wholeNumber(1, 600),
    'time limit of an event query',
  ),
  rerouteOlderThanDays: setting(
    'PENNON_REROUTE_OLDER_THAN_DAYS',
    '',
    'days, from 1 to 3650, or nothing',
    orNull(wholeNumber(1, 3650)),
    'live events at least this old use the historical lane: not ordered with newer events of the same id, and never billed',
  ),
  hotKeyEventsPerMinute: setting(
    'PENNON_HOT_KEY_EVENTS_PER_MINUTE',
    '',
    'events, from 1 to 1000000000, or nothing',
    orNull(wholeNumber(1, 1_000_000_000)),
    'a distinct id that sends more than this in 60 s is processed without a person until it slows down',
  ),
  logLevel: setting('PENNON_LOG_LEVEL', 'info', logLevels.join(', '), oneOf(logLevels), 'log level'),
}

/**
 * Settings for deployments that this version does not support. Ignoring them would store data in an unexpected place.
 */
const notHereYet = ['KAFKA_BROKERS'] as const

/** Our variables that are not settings: they say how a process was started. */
const ownVariables = new Set(['PENNON_SERVE_PID'])

export type Environment = Readonly<Record<string, string | undefined>>

/**
 * Reads the environment. The error is one line for the operator: which setting, what is wrong, and what would be right.
 * Source: ours, docs/operating/settings.md.
 */
export function readConfig(all: Environment): Result<Config, string> {
  const environment = withoutServiceLinks(all)
  const known = new Set(Object.values(settings).map(({ variable }) => variable))
  for (const name of Object.keys(environment)) {
    if (!name.startsWith('PENNON_') || known.has(name) || ownVariables.has(name)) continue
    // Names are compared without the prefix, since some settings have it and some do not.
    const withoutPrefix = (text: string) => text.replace(/^PENNON_/, '')
    const meant =
      findIntendedName(withoutPrefix(name), [...known], variable => [withoutPrefix(variable)]) ??
      findAbbreviatedName(withoutPrefix(name), [...known], withoutPrefix)
    const hint = meant === null ? '' : ` Did you mean ${meant}?`
    return err(
      `Unknown setting ${name}.${hint} All settings: \`${pennonCommand('config')}\`${inDocs('operating/settings.md')}.`,
    )
  }
  const unsupported = notHereYet.find(name => environment[name])
  if (unsupported !== undefined) {
    return err(`${unsupported} is set, but this version of Pennon keeps its log in PENNON_DATA. Unset it to start.`)
  }
  const config: Record<string, unknown> = {}
  for (const [key, definition] of Object.entries(settings) as [keyof Config, Setting<unknown>][]) {
    const value = readOne(definition, environment)
    if (!value.ok) return value
    config[key] = value.value
  }
  if (config.databaseReadUrl !== null && config.databaseUrl === null)
    return err('DATABASE_READ_URL is set without DATABASE_URL; set both, or neither.')
  if (config.adminPort === config.port && config.port !== 0)
    return err(`PORT and PENNON_ADMIN_PORT are both ${config.port}; set one of them to another port.`)
  if (config.eventsPort !== null && config.eventsPassword === null)
    return err('PENNON_EVENTS_PORT is set without PENNON_EVENTS_PASSWORD; set both, or neither.')
  if (
    config.eventsPort !== null &&
    config.eventsPort !== 0 &&
    [config.port, config.adminPort].includes(config.eventsPort)
  )
    return err(`PENNON_EVENTS_PORT ${config.eventsPort} is already used by another setting; set it to a free port.`)
  return ok(Object.freeze(config) as unknown as Config)
}

/** Reads one setting, for commands that work without a service and its other settings. */
export function readSetting<K extends keyof Config>(key: K, environment: Environment): Result<Config[K], string> {
  return readOne(settings[key] as Setting<Config[K]>, environment)
}

function readOne<T>(definition: Setting<T>, environment: Environment): Result<T, string> {
  const text = environment[definition.variable] ?? definition.fallback
  const value = definition.parse(text.trim())
  return value === undefined
    ? err(`${definition.variable} is ${quoteSetting(text, definition)}; expected ${definition.expects}.`)
    : ok(value)
}

export interface SettingLine {
  readonly variable: string
  readonly value: string
  readonly origin: 'environment' | 'default'
  readonly meaning: string
}

/**
 * Kubernetes sets variables in each container for every service in its namespace. For a service called `pennon` these
 * are `PENNON_SERVICE_HOST`, `PENNON_PORT` and the like; `pennon-admin` sets `PENNON_ADMIN_PORT` to an address.
 */
function withoutServiceLinks(environment: Environment): Environment {
  const isServiceLink = ([name, value]: [string, string | undefined]) =>
    /_SERVICE_(?:HOST|PORT(?:_[A-Z0-9_]+)?)$|_PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?$/.test(name) ||
    (name.endsWith('_PORT') && /^(?:tcp|udp|sctp):\/\//.test(value ?? ''))
  return Object.fromEntries(Object.entries(environment).filter(entry => !isServiceLink(entry)))
}

/** Every setting with its value and its origin; secrets are masked. */
export function describeConfig(all: Environment): readonly SettingLine[] {
  const environment = withoutServiceLinks(all)
  return Object.values(settings).map(({ variable, fallback, meaning, secret }) => {
    const given = environment[variable]
    const value = given ?? fallback
    return {
      variable,
      value: secret && value !== '' ? '••••••••' : withoutSecrets(value),
      origin: given === undefined ? 'default' : 'environment',
      meaning,
    }
  })
}

function quoteSetting(text: string, definition: Setting<unknown>): string {
  return definition.secret ? 'not usable' : JSON.stringify(withoutSecrets(text))
}

/** Masks keys and passwords, which may be in the wrong setting by mistake. */
function withoutSecrets(text: string): string {
  return text.replaceAll(/(ph[xs]_)[\x21-\x7e]+/g, '$1••••••••').replaceAll(/:\/\/[^\s/]*@/g, '://••••••••@')
}
