// The stores that an instance would use: state, events, and the database of locations.

import { statSync } from 'node:fs'
import Database from 'better-sqlite3'
import { dayMs } from '#core/time.ts'
import { endpointOfUrl } from '../../adapters/clickhouse/clickhouse-clients.ts'
import { engineLibraryPath } from '../../adapters/clickhouse-embedded/engine-library.ts'
import { openGeoip } from '../../compose/geoip.ts'
import { stateUrlsOf } from '../../compose/state.ts'
import { findLogFaults, findStateFault, readStateThrough } from '../../compose/store-faults.ts'
import type { Config } from '../../config.ts'
import { silentLogger } from '../../telemetry/log.ts'
import { readableBytes } from '../readable-bytes.ts'
import { bad, type Finding, good, reasonOf } from './finding.ts'

const answerMsMax = 3_000
/** Addresses move between networks; GeoLite2 itself changes twice a week. */
const staleAfterDays = 365

export async function checkState(config: Config): Promise<readonly Finding[]> {
  const findings = [...checkFiles(config)]
  const urls = stateUrlsOf(config)
  if (urls !== null) findings.unshift(await checkDatabase('state', 'DATABASE_URL', urls.url))
  if (urls !== null && urls.readUrl !== null)
    findings.push(await checkDatabase('state, reading', 'DATABASE_READ_URL', urls.readUrl))
  return findings
}

/** The log, and the state beside it. */
function checkFiles(config: Config): readonly Finding[] {
  const hasState = config.databaseUrl === null
  const isFolder = statSync(config.dataFolder, { throwIfNoEntry: false })?.isDirectory() ?? false
  try {
    // What else it is, the check of the folder says.
    if (!isFolder) return [good(hasState ? 'state and log' : 'log', `SQLite ${sqliteVersion()}`)]
    const fault = findStateFault(config)
    const read = hasState && fault === null ? readStateThrough(config) : null
    const stateFault = fault ?? (typeof read === 'object' ? read : null)
    const faults = [
      ...(stateFault === null ? [] : [bad('state', stateFault.found, stateFault.remedy)]),
      ...findLogFaults(config).map(({ found, remedy }) => bad('log', found, remedy)),
    ]
    if (faults.length > 0) return faults
    const note = read === 'opened' ? '; state.db is large: it was opened, and not read through' : ''
    return [good(hasState ? 'state and log' : 'log', `SQLite ${sqliteVersion()}${note}`)]
  } catch (cause) {
    const remedy = 'run doctor as the user that the instance runs as, and look at the disk'
    return [bad(hasState ? 'state and log' : 'log', `cannot be opened (${reasonOf(cause)})`, remedy)]
  }
}

async function checkDatabase(what: string, setting: string, url: string): Promise<Finding> {
  const { checkPostgres } = await import('../../adapters/postgres/check-postgres.ts')
  const checked = await checkPostgres(url)
  if (!checked.ok) {
    const { message, mayPass } = checked.error
    return bad(
      what,
      message,
      mayPass ? `start it, or check ${setting} and the network` : `mend it, or change ${setting}`,
    )
  }
  const { version, place, isReplica, state, mayCreate } = checked.value
  const where = `PostgreSQL ${version} at ${place}`
  if (setting !== 'DATABASE_URL') return good(what, `${where}${isReplica ? ', a replica' : ''}`)
  if (isReplica) return bad(what, `${where} is a replica`, 'name its primary: everything is written there')
  if ('refusal' in state) {
    const [found, ...remedy] = state.refusal.split('. ')
    return bad(what, `${where}: ${found}`, remedy.join('. '))
  }
  const { schema, isMade, hasState } = state
  if (!mayCreate)
    return bad(
      what,
      `the role of ${where} may not ${isMade ? `create tables in schema ${schema}` : `make the schema ${schema}`}`,
      `let it, as the owner of the database: ${isMade ? `GRANT CREATE ON SCHEMA ${schema} TO` : `CREATE SCHEMA ${schema} AUTHORIZATION`} the role`,
    )
  return good(what, `${where}, schema ${schema}${hasState ? '' : ' (tables are made at the first start)'}`)
}

function sqliteVersion(): string {
  const database = new Database(':memory:')
  try {
    return database.prepare<[], string>('SELECT sqlite_version()').pluck().get()!
  } finally {
    database.close()
  }
}

export async function checkEvents(config: Config): Promise<Finding> {
  return config.clickhouseUrl === null ? checkEmbeddedEngine() : checkClickHouse(config.clickhouseUrl)
}

function checkEmbeddedEngine(): Finding {
  try {
    return good('event store', `embedded ClickHouse, ${readableBytes(statSync(engineLibraryPath()).size)} library`)
  } catch (cause) {
    const remedy =
      'the embedded engine exists for Linux and macOS on x64 and arm64; elsewhere set CLICKHOUSE_URL. Else run `npm ci`'
    const why = (cause as Error).message.split('\n')[0]
    return bad('event store', `the embedded engine is not installed (${why})`, remedy)
  }
}

/** Asks with the user and the password, since a server that only answers may still refuse both. */
async function checkClickHouse(clickhouseUrl: string): Promise<Finding> {
  const { url, writer } = endpointOfUrl(clickhouseUrl)
  const where = `ClickHouse at ${new URL(url).host}`
  try {
    const response = await fetch(new URL('/?query=SELECT+version()', url), {
      headers: { 'x-clickhouse-user': writer.username, 'x-clickhouse-key': writer.password },
      signal: AbortSignal.timeout(answerMsMax),
    })
    const text = (await response.text()).trim()
    if (response.ok) return good('event store', `${where} answers, version ${text}`)
    const why = `it answers ${response.status} ${text.slice(0, 120).split('\n')[0]}`
    return bad('event store', `${where}: ${why}`, 'check user and password of CLICKHOUSE_URL, and its log')
  } catch (cause) {
    return bad(
      'event store',
      `${where} does not answer (${reasonOf(cause)})`,
      'start it, or check CLICKHOUSE_URL and the network',
    )
  }
}

/** None at all is a way to run; a database of another decade only misleads. */
export function checkGeoip(config: Config): Finding {
  const opened = openGeoip(config, silentLogger())
  if (!opened.ok) return bad('geoip', opened.error, 'get GeoLite2 City from MaxMind, or unset GEOIP_DATABASE')
  const database = opened.value
  if (database === null)
    return good('geoip', 'no database: nothing gets a location. Set GEOIP_DATABASE, or run `npm ci` to install one')
  database.close()
  const ageDays = Math.floor((Date.now() - database.builtAtMs) / dayMs)
  const found = `${database.origin}, built ${new Date(database.builtAtMs).toISOString().slice(0, 10)}`
  return ageDays <= staleAfterDays
    ? good('geoip', found)
    : bad('geoip', `${found}, ${ageDays} days ago`, 'set GEOIP_DATABASE to a file that geoipupdate keeps current')
}
