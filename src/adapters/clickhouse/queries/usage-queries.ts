// Counts for billing: events per day of charge, each identity once.

import {
  exceptionEventName,
  llmEventPrefix,
  productTourProperty,
  surveyEventNames,
} from '#core/capture/quota-resource.ts'
import { noEventUsage } from '#core/usage.ts'
import type { UsageDay } from '#ports/events/event-store-upkeep.ts'
import { type ClickHouseClient, readRows } from '../connection/clickhouse-clients.ts'

/**
 * The copy that counts may have arrived in another month than a charged copy, so the query reads every copy on the event
 * days of charged rows, and filters by day of charge afterwards (`defer_partition_pruning_after_final`). An inner query
 * finds those event days by two columns; all copies of an identity have the same event day. No row is charged on a day
 * after its arrival, so the inner query skips the months of arrival before `fromDay`.
 * @param fromDay, toDay inclusive, `YYYY-MM-DD`.
 */
export async function countUsage(
  client: ClickHouseClient,
  projectId: number,
  fromDay: string,
  toDay: string,
  signal: AbortSignal,
): Promise<UsageDay[]> {
  const query_params = {
    project: projectId,
    from_day: fromDay,
    to_day: toDay,
    exception: exceptionEventName,
    llm_prefix: llmEventPrefix,
    surveys: surveyEventNames,
    tour: productTourProperty,
  }
  const rowsOf = async <Row>(query: string): Promise<Row[]> => {
    return readRows<Row>(client, signal, { query, query_params })
  }
  const days = await rowsOf<[string, ...number[]]>(
    `SELECT ${day}, ${countIfSql('import_job_id = 0')}, ${countIfSql('import_job_id > 0')},
      ${countIfSql('import_job_id = 0 AND event = {exception:String}')},
      ${countIfSql('import_job_id = 0 AND startsWith(event, {llm_prefix:String})')},
      ${countIfSql(`import_job_id = 0 AND ${isSurvey}`)}
    FROM events FINAL WHERE ${chargedIn} GROUP BY day ORDER BY day`,
  )
  // Reads the properties of survey events only, since properties are most of an event's bytes.
  const tours = days.some(([, , , , , surveys]) => surveys! > 0)
    ? await rowsOf<[string, number]>(
        `SELECT ${day}, ${countIfSql('JSONHas(properties, {tour:String})')}
        FROM events FINAL WHERE ${chargedIn} AND ${isSurvey} AND import_job_id = 0 GROUP BY day`,
      )
    : []
  const usage = new Map<string, UsageDay>()
  const toursOf = new Map(tours)
  for (const [day, eventsCharged, eventsImported, exceptions, llmEvents, surveys] of days)
    usage.set(day, {
      ...noEventUsage,
      day,
      eventsCharged: eventsCharged!,
      eventsImported: eventsImported!,
      exceptions: exceptions!,
      llmEvents: llmEvents!,
      // Rows that are stored between the two queries could make the difference negative or too small; the next count
      // corrects it.
      surveyResponses: Math.max(0, surveys! - (toursOf.get(day) ?? 0)),
    })
  for (const [day, calls] of await rowsOf<[string, number]>(deduplicatedPerDay)) {
    const counted = usage.get(day) ?? { ...noEventUsage, day }
    usage.set(day, { ...counted, eventsCharged: counted.eventsCharged + calls })
  }
  for (const [day, recordings] of await rowsOf<[string, number]>(sessionsPerDay))
    usage.set(day, { ...noEventUsage, ...usage.get(day), day, recordings })
  return [...usage.values()].sort((a, b) => (a.day < b.day ? -1 : 1))
}

/**
 * A session is charged on the day on which its first recording arrived. No SDK continues a session for longer than a
 * day, so the recordings of the day before show which sessions are only continued.
 */
const sessionsPerDay = `SELECT toString(day), toFloat64(count()) FROM (
  SELECT toDate32(min(received_at)) AS day FROM replay_messages
  WHERE project_id = {project:UInt32} AND received_at >= toDateTime64({from_day:Date32} - 1, 3, 'UTC')
    AND received_at < toDateTime64({to_day:Date32} + 1, 3, 'UTC')
  GROUP BY sipHash128(session_id)
) WHERE day >= {from_day:Date32} GROUP BY day`

const day = 'toString(toDate32(charged_at)) AS day'
const isSurvey = 'event IN {surveys:Array(String)}'
const fromTime = `toDateTime64({from_day:Date32}, 3, 'UTC')`
const charged = `charged_at >= ${fromTime} AND charged_at < toDateTime64({to_day:Date32} + 1, 3, 'UTC')`
const chargedIn = `project_id = {project:UInt32} AND ${charged} AND toDate32(timestamp) IN (
  SELECT DISTINCT toDate32(timestamp) FROM events
  WHERE project_id = {project:UInt32} AND captured_at >= ${fromTime} AND ${charged}
)`

/** Flag calls that were not stored because they repeat a stored call. Source: docs/wire/ingestion.md 6.9 (2). */
const deduplicatedPerDay = `SELECT ${day}, toFloat64(count()) FROM deduplicated_flag_calls FINAL
  WHERE project_id = {project:UInt32} AND ${charged} AND toDate32(timestamp) IN (
    SELECT DISTINCT toDate32(timestamp) FROM deduplicated_flag_calls WHERE project_id = {project:UInt32} AND ${charged}
  ) GROUP BY day`

function countIfSql(condition: string): string {
  return `toFloat64(countIf(${condition}))`
}
