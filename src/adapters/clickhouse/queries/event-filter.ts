// Translates the filters of a list of events to SQL conditions. A caller's values are always sent as query parameters.

import { isUuid } from '#core/events/uuid.ts'
import { type JsonValue, readJsonNumber, toComparableText } from '#core/json.ts'
import type { EventQuery } from '#ports/events/event-queries.ts'
import { timeParamSql } from '../parameters/time-param.ts'

export interface EventFilter {
  readonly conditions: string[]
  /** Conditions on an event's day, and conditions that hold for either all or none of the copies of an identity. */
  readonly keyConditions: string[]
  readonly personId: string | undefined
  readonly params: Record<string, unknown>
}

/** SQL of a number that puts events with the same time and uuid in a fixed order. */
export const tieBreak = 'sipHash64(event, distinct_id)'

/** @returns null when nothing can match because an id is not a UUID. */
export function buildEventFilter(query: Omit<EventQuery, 'limit'>): EventFilter | null {
  const keyConditions = ['project_id = {project:UInt32}']
  const conditions: string[] = []
  const params: Record<string, unknown> = { project: query.projectId }
  const addCondition = (to: string[], condition: string, values: Record<string, unknown>) => {
    to.push(condition)
    Object.assign(params, values)
  }
  /**
   * Copies of one identity may have different times on the same day. So the condition on the day is applied to every copy,
   * but the condition on the time only to the copy that FINAL chooses.
   */
  const addTimeCondition = (operator: '<' | '<=' | '>' | '>=', name: string, ms: number) => {
    addCondition(conditions, `timestamp ${operator} ${timeParamSql(name)}`, { [name]: ms })
    keyConditions.push(`toDate32(timestamp) ${operator[0]}= toDate32(${timeParamSql(name)})`)
  }
  if (query.event !== undefined) addCondition(keyConditions, 'event = {event:String}', { event: query.event })
  if (query.distinctId !== undefined) addCondition(keyConditions, 'distinct_id = {id:String}', { id: query.distinctId })
  if (query.uuid !== undefined) {
    if (!isUuid(query.uuid)) return null
    addCondition(keyConditions, 'uuid = {uuid:UUID}', { uuid: query.uuid })
  }
  if (query.afterMs !== undefined) addTimeCondition('>', 'after', query.afterMs)
  if (query.beforeMs !== undefined) addTimeCondition('<', 'before', query.beforeMs)
  if (query.personId !== undefined && !isUuid(query.personId)) return null
  query.properties?.forEach(({ key, value }, index) => {
    const params = { [`key${index}`]: key, [`texts${index}`]: listEqualTexts(value) }
    addCondition(conditions, propertyEqualsSql(`key${index}`, `texts${index}`), params)
  })
  if (query.after !== undefined) {
    const { timestampMs, uuid, tieBreak: tie } = query.after
    if (!isUuid(uuid) || !/^\d{1,20}$/.test(tie)) return null
    addTimeCondition(query.descending ? '<=' : '>=', 'from', timestampMs)
    const beyond = query.descending ? '<' : '>'
    addCondition(
      conditions,
      `(timestamp, uuid, ${tieBreak}) ${beyond} (${timeParamSql('from')}, {from_uuid:UUID}, {from_tie:UInt64})`,
      { from_uuid: uuid, from_tie: tie },
    )
  }
  return { conditions: [...keyConditions, ...conditions], keyConditions, personId: query.personId, params }
}

/** Compares strings by value and everything else by its JSON text; an absent property equals nothing. */
function propertyEqualsSql(key: string, texts: string): string {
  return `JSONHas(properties, {${key}:String}) AND if(
    JSONType(properties, {${key}:String}) = 'String',
    JSONExtractString(properties, {${key}:String}),
    JSONExtractRaw(properties, {${key}:String})) IN {${texts}:Array(String)}`
}

/**
 * The texts that the engine may write for an equal value: it formats numbers differently (`1.0` as 1, `1e+21` as 1e21,
 * `-0.0` as -0, and `-0` as 0).
 */
function listEqualTexts(value: JsonValue): string[] {
  const number = readJsonNumber(value)
  if (number === undefined) return [toComparableText(value)]
  return [toComparableText(value), String(number), Object.is(number, -0) ? '-0' : String(number).replace('e+', 'e')]
}
