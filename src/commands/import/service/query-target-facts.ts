// Asks the target of a job which events of the same days and names it already has, for the report of the rehearsal. Only
// reads; a rehearsal does not need an answer. Source: docs/wire/import.md §2.7.

import { getOwnValue, isJsonObject, type JsonObject, type JsonValue, readJsonNumber } from '#core/json.ts'
import { readServiceJob } from '#importer/send/service-job.ts'
import type { OverlapDay, TargetAnswer, TargetFacts } from '#importer/stages/report/import-report.ts'
import type { TargetFactsQuery } from '#importer/stages/report/target-facts.ts'
import type { PrivateApi } from '../../client/private-api.ts'
import { quotePath } from '../messages/print.ts'
import { type JobOfFolder, queryJobTarget } from './target-api.ts'

/** This long, because counting the events of several years is slow. */
const timeoutMs = 120_000
/** The most names that the target is asked about, since a query may have 131,000 bytes of values. */
const namesMax = 500
const daysMax = 50_000

export async function queryTargetFacts(
  { folder, plan, signal }: JobOfFolder & { readonly signal: AbortSignal },
  asked: TargetFactsQuery,
): Promise<TargetAnswer> {
  const { target } = plan
  if (target === null)
    return { notAsked: 'the plan has no target. Plan with --project-key, and set PENNON_PERSONAL_KEY.' }
  const answer = await queryJobTarget(
    { folder, plan },
    {
      ...{ project: target.projectId ?? '@current', timeoutMs, signal },
      noKey: `set PENNON_PERSONAL_KEY to a personal key with the scopes project:read, query:read and import_job:read, and rehearse again: pennon import run ${quotePath(folder.path)} --rehearse-again.`,
    },
    api => findTargetFacts(api, asked, readServiceJob(folder)?.id ?? null),
  )
  return answer.ok ? answer.value : { notAsked: answer.error }
}

async function findTargetFacts(
  api: PrivateApi,
  { names, days }: TargetFactsQuery,
  ownJob: string | null,
): Promise<TargetFacts> {
  const project = await api.get('/')
  const asked = names.slice(0, namesMax)
  const known = new Set(
    (
      await queryRows(api, `SELECT DISTINCT event FROM events WHERE event IN {names} LIMIT ${namesMax}`, {
        names: asked,
      })
    ).map(([name]) => String(name)),
  )
  const hasEvents = known.size > 0 || (await queryRows(api, 'SELECT event FROM events LIMIT 1')).length > 0
  return {
    askedAt: new Date().toISOString(),
    timezone: typeof project.timezone === 'string' ? project.timezone : null,
    dropsLiveOlderThanSeconds: readJsonNumber(project.drop_events_older_than_seconds ?? null) ?? null,
    hasEvents,
    overlap: hasEvents ? await findOverlap(api, days) : [],
    pendingJobs: (await api.list('/import_jobs/')).flatMap(job => toPendingJobs(job, days, ownJob)),
    newNames: asked.filter(name => !known.has(name)),
  }
}

async function findOverlap(api: PrivateApi, days: readonly string[]): Promise<readonly OverlapDay[]> {
  const [first, last] = [days[0], days.at(-1)]
  if (first === undefined || last === undefined) return []
  const query =
    'SELECT toDate(timestamp) AS day, countIf(import_job_id = 0) AS live, countIf(import_job_id > 0) AS imported, ' +
    'arraySlice(arraySort(groupUniqArrayIf(import_job_id, import_job_id > 0)), 1, 10) AS jobs FROM events ' +
    'WHERE timestamp >= toDateTime64({first}, 3) AND timestamp < toDateTime64({last}, 3) + INTERVAL 1 DAY ' +
    `GROUP BY day ORDER BY day LIMIT ${daysMax}`
  const rows = await queryRows(api, query, { first: `${first} 00:00:00`, last: `${last} 00:00:00` })
  const wanted = new Set(days)
  return rows
    .map(([day, live, imported, jobs]) => ({
      day: String(day).slice(0, 10),
      live: readJsonNumber(live ?? null) ?? 0,
      imported: readJsonNumber(imported ?? null) ?? 0,
      jobs: Array.isArray(jobs) ? jobs.map(String) : [],
    }))
    .filter(({ day }) => wanted.has(day))
}

async function queryRows(
  api: PrivateApi,
  query: string,
  values: JsonObject = {},
): Promise<readonly (readonly JsonValue[])[]> {
  const { results } = await api.post('/query/', { query: { kind: 'HogQLQuery', query, values } })
  return Array.isArray(results) ? results.filter(Array.isArray) : []
}

/**
 * @returns the job's number and details if it is another unfinished job whose range includes some of the days;
 * otherwise an empty list.
 */
function toPendingJobs(
  { number, name, state, plan }: JsonObject,
  days: readonly string[],
  ownJob: string | null,
): TargetFacts['pendingJobs'] {
  const isEnded = ['published', 'publishing', 'discarded', 'discarding'].includes(String(state))
  const range = isJsonObject(plan) ? getOwnValue(plan as JsonObject, 'range') : undefined
  if (isEnded || String(number) === ownJob || !isJsonObject(range)) return []
  const [first = '', last = ''] = ['first', 'last'].map(key =>
    String(getOwnValue(range as JsonObject, key)).slice(0, 10),
  )
  if (!days.some(day => first <= day && day <= last)) return []
  return [{ id: String(number), name: String(name), state: String(state) }]
}
