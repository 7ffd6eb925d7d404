// Checks the stores that an instance would use: state, log, events, and the GeoIP database.

import { statSync } from 'node:fs'
import {
  checkPostgresUrl,
  findEngineLibraryPath,
  findEventStoreProblem,
  findPostgresProblem,
  parseEndpointUrl,
  readSqliteVersion,
} from '#compose/stores/check-stores.ts'
import { noGeoip, openGeoip } from '#compose/stores/geoip.ts'
import { readStateUrls } from '#compose/stores/state.ts'
import {
  checkWholeState,
  findEngineDamage,
  findEngineFault,
  findForeignLogFault,
  findLogFaults,
  findStateFault,
  findStateProblem,
  parseFaultLine,
} from '#compose/stores/store-faults.ts'
import type { Config } from '#config.ts'
import { dayMs } from '#core/time.ts'
import { inDocs } from '#distribution.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { formatBytes } from '../format-bytes.ts'
import { createBadFinding, createGoodFinding, createWarningFinding, type Finding, formatCause } from './finding.ts'

const answerMsMax = 3_000
/**
 * An older database is reported: addresses move between networks, and GeoLite2's licence asks for current data (it changes
 * twice a week).
 */
const staleAfterDays = 60

export async function checkStateStore(config: Config): Promise<readonly Finding[]> {
  const findings = [...(await checkFiles(config))]
  const urls = readStateUrls(config)
  if (urls !== null) findings.unshift(await checkDatabase('state', 'DATABASE_URL', urls.url))
  if (urls !== null && urls.readUrl !== null)
    findings.push(await checkDatabase('state, reading', 'DATABASE_READ_URL', urls.readUrl))
  return findings
}

/** Checks the log, and the state if it is in the data folder. */
async function checkFiles(config: Config): Promise<readonly Finding[]> {
  const hasState = config.databaseUrl === null
  const isFolder = statSync(config.dataFolder, { throwIfNoEntry: false })?.isDirectory() ?? false
  try {
    // If the path is something other than a folder, the check of the folder reports it.
    if (!isFolder) return [createGoodFinding(hasState ? 'state and log' : 'log', `SQLite ${readSqliteVersion()}`)]
    const unfit = findStateProblem(config)
    // The state is not checked any further, since opening it could change it.
    if (unfit !== null) return [toBadFinding('state', unfit)]
    const fault = findStateFault(config)
    const read = hasState && fault === null ? checkWholeState(config) : null
    const stateFault = fault ?? (typeof read === 'object' ? read : null)
    const faults = [
      ...(stateFault === null ? [] : [createBadFinding('state', stateFault.found, stateFault.remedy)]),
      ...findLogFaults(config).map(({ found, remedy }) => createBadFinding('log', found, remedy)),
    ]
    if (faults.length > 0) return faults
    const foreign = await findForeignLogFault(config)
    if (foreign !== null) return [createBadFinding('log', foreign.found, foreign.remedy)]
    const note = read === 'opened' ? '; state.db is large: it was opened, but not fully checked' : ''
    return [createGoodFinding(hasState ? 'state and log' : 'log', `SQLite ${readSqliteVersion()}${note}`)]
  } catch (cause) {
    const remedy = 'run doctor as the user of the instance, and check the disk'
    return [createBadFinding(hasState ? 'state and log' : 'log', `cannot be opened (${formatCause(cause)})`, remedy)]
  }
}

function toBadFinding(what: string, line: string): Finding {
  const { found, remedy } = parseFaultLine(line)
  return createBadFinding(what, found, remedy)
}

async function checkDatabase(what: string, setting: string, url: string): Promise<Finding> {
  const checked = await checkPostgresUrl(url)
  if (!checked.ok) {
    const { message, mayPass } = checked.error
    return createBadFinding(
      what,
      message,
      mayPass ? `start it, or check ${setting} and the network` : `fix it, or change ${setting}`,
    )
  }
  const { version, place, isReplica, state, mayCreate } = checked.value
  const where = `PostgreSQL ${version} at ${place}`
  if (setting !== 'DATABASE_URL') return createGoodFinding(what, `${where}${isReplica ? ', a replica' : ''}`)
  if (isReplica)
    return createBadFinding(what, `${where} is a replica`, 'set the URL of its primary, since Pennon writes to it')
  if ('refusal' in state) {
    const [found, ...remedy] = state.refusal.split('. ')
    return createBadFinding(what, `${where}: ${found}`, remedy.join('. '))
  }
  const { schema, isMade, hasState } = state
  if (!mayCreate)
    return createBadFinding(
      what,
      `the role of ${where} may not ${isMade ? `create tables in schema ${schema}` : `create the schema ${schema}`}`,
      `let it, as the owner of the database: ${isMade ? `GRANT CREATE ON SCHEMA ${schema} TO` : `CREATE SCHEMA ${schema} AUTHORIZATION`} the role`,
    )
  const unfit = hasState ? await findPostgresProblem(url) : null
  if (unfit !== null) return toBadFinding(what, unfit)
  return createGoodFinding(what, `${where}, schema ${schema}${hasState ? '' : ' (tables are created on first start)'}`)
}

export async function checkEventStore(config: Config): Promise<Finding> {
  if (config.clickhouseUrl !== null) return checkClickHouse(config, config.clickhouseUrl)
  const fault = findEngineFault(config) ?? (await findEngineDamage(config))
  if (fault !== null) return createBadFinding('event store', fault.found, fault.remedy)
  return createGoodFinding(
    'event store',
    `embedded ClickHouse, ${formatBytes(statSync(findEngineLibraryPath()!).size)} library`,
  )
}

/** Sends a query with the user and the password, since a server that answers may still refuse them. */
async function checkClickHouse(config: Config, clickhouseUrl: string): Promise<Finding> {
  const unfit = await findEventStoreProblem(config)
  if (unfit !== null) return toBadFinding('event store', unfit)
  const { url, writer } = parseEndpointUrl(clickhouseUrl)
  const where = `ClickHouse at ${new URL(url).host}`
  try {
    const response = await fetch(new URL('/?query=SELECT+version()', url), {
      headers: { 'x-clickhouse-user': writer.username, 'x-clickhouse-key': writer.password },
      signal: AbortSignal.timeout(answerMsMax),
    })
    const text = (await response.text()).trim()
    if (response.ok) return createGoodFinding('event store', `${where} is reachable, version ${text}`)
    const reason = `it answered ${response.status} ${text.slice(0, 120).split('\n')[0]}`
    return createBadFinding(
      'event store',
      `${where}: ${reason}`,
      'check user and password of CLICKHOUSE_URL, and its log',
    )
  } catch (cause) {
    return createBadFinding(
      'event store',
      `${where} does not respond (${formatCause(cause)})`,
      'start it, or check CLICKHOUSE_URL and the network',
    )
  }
}

/** Neither a missing database nor old data counts as a fault: old data only locates addresses less accurately. */
export function checkGeoip(config: Config, nowMs: number): Finding {
  const opened = openGeoip(config, createSilentLogger())
  if (!opened.ok)
    return createBadFinding('geoip', opened.error, 'get GeoLite2 City from MaxMind, or unset GEOIP_DATABASE')
  const database = opened.value
  if (database === null) return createWarningFinding('geoip', noGeoip.found, noGeoip.remedy)
  database.close()
  const ageDays = Math.floor((nowMs - database.builtAtMs) / dayMs)
  const found = `${database.origin}, built ${new Date(database.builtAtMs).toISOString().slice(0, 10)}`
  if (ageDays <= staleAfterDays) return createGoodFinding('geoip', found)
  // Old data of the installed package gets no warning: even a fresh installation has no newer data.
  if (config.geoipDatabase === null)
    return createGoodFinding('geoip', `${found}; to update it, set GEOIP_DATABASE${inDocs('operating/settings.md')}`)
  const remedy = `set GEOIP_DATABASE to a GeoLite2-City.mmdb that geoipupdate keeps up to date${inDocs('operating/settings.md')}`
  return createWarningFinding('geoip', `${found}, ${ageDays} days ago`, remedy)
}
