// What became of surveys: their events, counted. Each identity counts once, answers that came in parts once, persons are
// those of today. Source: PostHog's survey statistics.

import { type SurveyCount, type SurveyCounts, surveyEvents } from '#core/surveys/survey-events.ts'
import type { SurveyCountQuery } from '#ports/event-store.ts'
import type { ClickHouseClient } from './clickhouse-clients.ts'

const { shown, dismissed, sent } = surveyEvents

/** See `EventStore.countSurveyEvents`. */
export async function countSurveyEvents(
  client: ClickHouseClient,
  query: SurveyCountQuery,
  signal: AbortSignal,
): Promise<SurveyCounts> {
  const { projectId, surveyIds, fromMs, toMs } = query
  const bound = (operator: string, name: string, ms: number | undefined) =>
    ms === undefined ? '' : `AND timestamp ${operator} fromUnixTimestamp64Milli({${name}:Int64}, 'UTC')`
  // A dismissal behind answered questions is no dismissal: the answers were sent.
  const events = `SELECT event, timestamp,
      if(o.distinct_id = '', e.person_id, o.person_id) AS person,
      if(event = {sent:String} AND submission != '', submission, toString((toDate32(timestamp), distinct_id, uuid))) AS answer
    FROM (
      SELECT event, timestamp, distinct_id, uuid, person_id,
        JSONExtractString(properties, '$survey_submission_id') AS submission
      FROM events FINAL
      WHERE project_id = {project:UInt32} AND event IN {names:Array(String)}
        AND JSONExtractString(properties, '$survey_id') IN {surveys:Array(String)}
        AND (event != {dismissed:String} OR NOT JSONExtractBool(properties, '$survey_partially_completed'))
        ${bound('>=', 'from', fromMs)} ${bound('<=', 'to', toMs)}
    ) AS e LEFT ANY JOIN (
      SELECT distinct_id, person_id FROM person_distinct_id_overrides FINAL WHERE project_id = {project:UInt32}
    ) AS o USING (distinct_id)`
  const rowsOf = async <Row>(statement: string): Promise<Row[]> => {
    const result = await client.query({
      query: statement,
      query_params: {
        ...{ project: projectId, names: [shown, dismissed, sent], sent, dismissed, surveys: surveyIds },
        ...(fromMs === undefined ? {} : { from: fromMs }),
        ...(toMs === undefined ? {} : { to: toMs }),
      },
      use_multipart_params: true, // a thousand ids do not fit a URL
      format: 'JSONCompactEachRow',
      abort_signal: signal,
    })
    return result.json<Row>()
  }
  const counted = await rowsOf<[string, ...(number | string)[]]>(
    `SELECT event, uniqExact(answer), uniqExact(person), toUnixTimestamp64Milli(min(timestamp)),
      toUnixTimestamp64Milli(max(timestamp)) FROM (${events}) GROUP BY event`,
  )
  const [both] = await rowsOf<[number | string]>(
    `SELECT count() FROM (SELECT person FROM (${events}) GROUP BY person
      HAVING countIf(event = {dismissed:String}) > 0 AND countIf(event = {sent:String}) > 0)`,
  )
  const of = (name: string): SurveyCount => {
    const row = counted.find(([event]) => event === name)
    if (row === undefined) return { count: 0, persons: 0, firstMs: null, lastMs: null }
    const [count, persons, firstMs, lastMs] = row.slice(1).map(Number)
    return { count: count!, persons: persons!, firstMs: firstMs!, lastMs: lastMs! }
  }
  return {
    shown: of(shown),
    dismissed: of(dismissed),
    sent: of(sent),
    personsDismissedAndSent: Number(both![0]),
  }
}
