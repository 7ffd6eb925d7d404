// Counts the events of surveys. Each identity counts once, and so does a survey response that is sent in parts; persons are
// resolved as of today. Source: PostHog's survey statistics.

import { type SurveyCount, type SurveyCounts, surveyEvents } from '#core/surveys/survey-events.ts'
import type { SurveyCountQuery } from '#ports/events/event-queries.ts'
import { type ClickHouseClient, readRows } from '../connection/clickhouse-clients.ts'
import { timeParamSql } from '../parameters/time-param.ts'
import { eventsWithPersonsSql } from './current-persons.ts'

const { shown, dismissed, sent } = surveyEvents

/** See `EventQueries.countSurveyEvents`. */
export async function countSurveyEvents(
  client: ClickHouseClient,
  query: SurveyCountQuery,
  signal: AbortSignal,
): Promise<SurveyCounts> {
  const { projectId, surveyIds, fromMs, toMs } = query
  const timeBoundSql = (operator: string, name: string, ms: number | undefined) =>
    ms === undefined ? '' : `AND timestamp ${operator} ${timeParamSql(name)}`
  // A dismissal after answered questions does not count as a dismissal, since the answers were sent.
  const conditions = `WHERE project_id = {project:UInt32} AND event IN {names:Array(String)}
    AND JSONExtractString(properties, '$survey_id') IN {surveys:Array(String)}
    AND (event != {dismissed:String} OR NOT JSONExtractBool(properties, '$survey_partially_completed'))
    ${timeBoundSql('>=', 'from', fromMs)} ${timeBoundSql('<=', 'to', toMs)}`
  const submission = "JSONExtractString(properties, '$survey_submission_id') AS submission"
  const events = `SELECT event, timestamp, person,
      if(event = {sent:String} AND submission != '', submission, toString((toDate32(timestamp), distinct_id, uuid))) AS answer
    FROM (${eventsWithPersonsSql(`event, timestamp, distinct_id, uuid, ${submission}`, conditions)})`
  const rowsOf = async <Row>(statement: string): Promise<Row[]> => {
    return readRows<Row>(client, signal, {
      query: statement,
      query_params: {
        ...{ project: projectId, names: [shown, dismissed, sent], sent, dismissed, surveys: surveyIds },
        ...(fromMs === undefined ? {} : { from: fromMs }),
        ...(toMs === undefined ? {} : { to: toMs }),
      },
    })
  }
  const counted = await rowsOf<[string, ...(number | string)[]]>(
    `SELECT event, uniqExact(answer), uniqExact(person), toUnixTimestamp64Milli(min(timestamp)),
      toUnixTimestamp64Milli(max(timestamp)) FROM (${events}) GROUP BY event`,
  )
  const [both] = await rowsOf<[number | string]>(
    `SELECT count() FROM (SELECT person FROM (${events}) GROUP BY person
      HAVING countIf(event = {dismissed:String}) > 0 AND countIf(event = {sent:String}) > 0)`,
  )
  const findCount = (name: string): SurveyCount => {
    const row = counted.find(([event]) => event === name)
    if (row === undefined) return { count: 0, persons: 0, firstMs: null, lastMs: null }
    const [count, persons, firstMs, lastMs] = row.slice(1).map(Number)
    return { count: count!, persons: persons!, firstMs: firstMs!, lastMs: lastMs! }
  }
  return {
    shown: findCount(shown),
    dismissed: findCount(dismissed),
    sent: findCount(sent),
    personsDismissedAndSent: Number(both![0]),
  }
}
