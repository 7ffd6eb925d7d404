// Translates a tree of conditions to SQL. Conditions on an event's own properties become columns of the innermost query;
// conditions on current groups and persons become columns of joined tables. So no property texts have to pass through a
// join.

import type { Breakdown, Condition, PropertyCondition } from '#core/insights/conditions.ts'
import type { DateContext } from './date-sql.ts'
import { buildFlagAccess, buildJsonPropertyAccess, buildTextAccess, type PropertyAccess } from './property-access.ts'
import { buildPropertyTestSql, matchesWhenAbsent } from './property-test.ts'
import type { QueryParams } from './query-params.ts'

/** A table whose properties the conditions read. */
export type TableName = 'events' | 'persons' | `group_${number}`

export interface ConditionContext extends DateContext {
  /** See `buildFlagAccess`. */
  readonly readsFlagMap: boolean
}

export class ConditionSql {
  /** For each table, the SQL of the columns that the conditions need, each with its name (`… AS name`). */
  readonly tables = new Map<TableName, string[]>()
  /** Whether a condition needs the current person of an event. */
  needsPerson = false
  /** Whether a condition or breakdown reads a flag. */
  readsFlags = false
  readonly #context: ConditionContext
  readonly #params: QueryParams
  readonly #columns = new Map<string, string>()

  constructor(context: ConditionContext, params: QueryParams) {
    this.#context = context
    this.#params = params
  }

  /** SQL that is 1 or 0 and uses the columns in `tables`. */
  of(condition: Condition, table: TableName = 'events'): string {
    switch (condition.kind) {
      case 'all':
      case 'any': {
        const parts = condition.conditions.map(one => this.of(one, table))
        if (parts.length === 0) return condition.kind === 'all' ? '1' : '0'
        return `(${parts.join(condition.kind === 'all' ? ' AND ' : ' OR ')})`
      }
      case 'not':
        return `NOT (${this.of(condition.condition, table)})`
      case 'persons':
        if (table === 'events') this.needsPerson = true
        return `(${table === 'events' ? 'person' : 'uuid'} IN (${this.#params.list('UUID', condition.personIds)}))`
      case 'person_today': {
        if (table !== 'events') return this.of(condition.condition, table)
        this.needsPerson = true
        return `if(person_known, ${this.#column('persons', this.of(condition.condition, 'persons'))}, 0)`
      }
      case 'property':
        return this.#property(condition, table)
      case 'cohort':
        throw new Error('cohorts are replaced before a store is asked')
    }
  }

  /** SQL of an event's text in a breakdown; '' if the event has no value. */
  shown({ source, key }: Breakdown): string {
    // Longer values are truncated, so values with the same beginning count as one value.
    const shownValueSql = (access: PropertyAccess) => `leftUTF8(toString(${access.shown}), ${breakdownCharsMax})`
    if (source.kind !== 'group') return this.#column('events', shownValueSql(this.#access(source.kind, key)))
    if (key === '$group_key') return this.#column('events', buildGroupColumnSql(source.groupTypeIndex))
    const table: TableName = `group_${source.groupTypeIndex}`
    return this.#column(table, shownValueSql(this.#json(table, 'properties', key)))
  }

  #property(condition: PropertyCondition, table: TableName): string {
    const { source, key } = condition
    if (source.kind === 'group') {
      const { groupTypeIndex } = source
      const groupKey = buildGroupColumnSql(groupTypeIndex)
      // `$group_key` counts as a property of the group; its value is in the group's events.
      if (key === '$group_key') {
        const nameSql = (sql: string) => this.#column('events', sql)
        return this.#test(condition, 'events', buildTextAccess(groupKey, `${groupKey} != ''`, nameSql))
      }
      const groups: TableName = `group_${groupTypeIndex}`
      const test = this.#test(condition, groups, this.#json(groups, 'properties', key))
      return `if(${groups}_known, ${test}, ${matchesWhenAbsent(condition) ? 1 : 0})`
    }
    if (source.kind === 'person_today')
      return this.#test(condition, 'persons', this.#json('persons', 'properties', key))
    return this.#test(condition, table, this.#access(source.kind, key))
  }

  #access(kind: 'event' | 'person' | 'flag', key: string): PropertyAccess {
    if (kind === 'flag') {
      this.readsFlags = true
      return buildFlagAccess(key, this.#context.readsFlagMap, this.#params, sql => this.#column('events', sql))
    }
    return this.#json('events', kind === 'event' ? 'properties' : 'person_properties', key)
  }

  #json(table: TableName, column: string, key: string): PropertyAccess {
    return buildJsonPropertyAccess(column, key, this.#params, sql => this.#column(table, sql))
  }

  /** Adds a column to the table that is 1 if the condition holds. @returns the column's name. */
  #test(condition: PropertyCondition, table: TableName, access: PropertyAccess): string {
    return this.#column(table, buildPropertyTestSql(condition, access, this.#context, this.#params))
  }

  #column(table: TableName, sql: string): string {
    const known = this.#columns.get(`${table} ${sql}`)
    if (known !== undefined) return known
    const name = `${table}_${this.#columns.size}`
    this.#columns.set(`${table} ${sql}`, name)
    this.tables.getOrInsertComputed(table, () => []).push(`${sql} AS ${name}`)
    return name
  }
}

const breakdownCharsMax = 1_000

export function buildGroupColumnSql(groupTypeIndex: number): string {
  return `\`$group_${groupTypeIndex}\``
}
