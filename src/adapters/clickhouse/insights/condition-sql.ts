// A tree of conditions in SQL. Conditions on an event's own texts become columns of the innermost query, those on groups
// and persons of today columns of tables that are joined, so that no text of properties has to pass a join.

import type { Breakdown, Condition, PropertyCondition } from '#core/insights/conditions.ts'
import { accessFlag, accessJsonProperty, accessText, type PropertyAccess } from './property-access.ts'
import { compilePropertyTest, type MatchContext, type PropertyTest } from './property-test.ts'
import type { QueryParams } from './query-params.ts'

/** Node's decisions on residual values, as hex digests of `digestSql`. */
export interface Decided {
  readonly known: readonly string[]
  readonly matching: readonly string[]
}

/** A table whose texts the conditions read. */
export type TableName = 'events' | 'persons' | `group_${number}`

/** A condition on a property of its table. */
export interface Leaf extends PropertyTest {
  readonly id: string
  readonly key: string
  /** The column that says whether the condition holds. */
  readonly column: string
}

interface Table {
  /** SQL of the columns, with their names. */
  readonly columns: string[]
  readonly leaves: Leaf[]
}

export interface ConditionContext extends MatchContext {
  /** See `accessFlag`. */
  readonly readsFlagMap: boolean
}

/** SQL of the digest that represents a residual text in lists, since texts may be long. */
export function digestSql(text: string): string {
  return `hex(sipHash128(${text}))`
}

export class ConditionSql {
  readonly tables = new Map<TableName, Table>()
  /** Whether the person of today is needed. */
  needsPerson = false
  /** Whether any flag is read. */
  readsFlags = false
  readonly #context: ConditionContext
  readonly #params: QueryParams
  readonly #decided: ReadonlyMap<string, Decided>
  readonly #columns = new Map<string, string>()

  /** @param decided by the id of a leaf. Residual values of a leaf that is missing here stay undecided. */
  constructor(context: ConditionContext, params: QueryParams, decided: ReadonlyMap<string, Decided>) {
    this.#context = context
    this.#params = params
    this.#decided = decided
  }

  /**
   * SQL over the columns of `tables` that is 1 or 0, or NULL where it depends on a value that is undecided.
   */
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

  /** SQL of the text that a breakdown shows, '' for none. */
  shown({ source, key }: Breakdown): string {
    // Longer values are cut, so those with one beginning count as one value.
    const shownValue = (access: PropertyAccess) => `leftUTF8(toString(${access.shown}), ${breakdownCharsMax})`
    if (source.kind !== 'group') return this.#column('events', shownValue(this.#access(source.kind, key)))
    if (key === '$group_key') return this.#column('events', groupColumnSql(source.groupTypeIndex))
    const table: TableName = `group_${source.groupTypeIndex}`
    return this.#column(table, shownValue(this.#json(table, 'properties', key)))
  }

  #property(condition: PropertyCondition, table: TableName): string {
    const { source, key } = condition
    if (source.kind === 'group') {
      const { groupTypeIndex } = source
      const groupKey = groupColumnSql(groupTypeIndex)
      // The key counts as a property of the group, and every event of the group has it.
      if (key === '$group_key') return this.#leaf(condition, 'events', accessText(groupKey, `${groupKey} != ''`))
      const groups: TableName = `group_${groupTypeIndex}`
      const leaf = this.#leaf(condition, groups, this.#json(groups, 'properties', key))
      const { compiled } = this.#table(groups).leaves.find(({ column }) => column === leaf)!
      return `if(${groups}_known, ${leaf}, ${compiled.whenAbsent ? 1 : 0})`
    }
    if (source.kind === 'person_today')
      return this.#leaf(condition, 'persons', this.#json('persons', 'properties', key))
    return this.#leaf(condition, table, this.#access(source.kind, key))
  }

  #access(kind: 'event' | 'person' | 'flag', key: string): PropertyAccess {
    if (kind === 'flag') {
      this.readsFlags = true
      return accessFlag(key, this.#context.readsFlagMap, this.#params, sql => this.#column('events', sql))
    }
    return this.#json('events', kind === 'event' ? 'properties' : 'person_properties', key)
  }

  #json(table: TableName, column: string, key: string): PropertyAccess {
    return accessJsonProperty(column, key, this.#params, sql => this.#column(table, sql))
  }

  /** @returns the column of the table that says whether the condition holds. */
  #leaf(condition: PropertyCondition, table: TableName, access: PropertyAccess): string {
    const { key, operator, value, source, matchingVersion } = condition
    const id = JSON.stringify([table, source, key, operator, value, matchingVersion])
    const { leaves } = this.#table(table)
    const known = leaves.find(leaf => leaf.id === id)
    if (known !== undefined) return known.column
    const test = compilePropertyTest(condition, access, this.#context, this.#params)
    const residual = this.#column(table, test.residual)
    const decided = this.#decided.get(id)
    const isIn = (digests: readonly string[]) => `${digestSql(residual)} IN (${this.#params.list('String', digests)})`
    const decision =
      decided === undefined || decided.known.length === 0
        ? 'NULL'
        : `if(${isIn(decided.known)}, ${decided.matching.length === 0 ? '0' : isIn(decided.matching)}, NULL)`
    const { isPresent, matches, compiled } = test
    const column = this.#column(
      table,
      `multiIf(${residual} != '', ${decision}, ${isPresent}, toUInt8(${matches}), ${compiled.whenAbsent ? 1 : 0})`,
    )
    leaves.push({ ...test, residual, id, key, column })
    return column
  }

  #column(table: TableName, sql: string): string {
    const known = this.#columns.get(`${table} ${sql}`)
    if (known !== undefined) return known
    const name = `${table}_${this.#columns.size}`
    this.#columns.set(`${table} ${sql}`, name)
    this.#table(table).columns.push(`${sql} AS ${name}`)
    return name
  }

  #table(name: TableName): Table {
    const table = this.tables.get(name) ?? { columns: [], leaves: [] }
    this.tables.set(name, table)
    return table
  }
}

const breakdownCharsMax = 1_000

export function groupColumnSql(groupTypeIndex: number): string {
  return `\`$group_${groupTypeIndex}\``
}
