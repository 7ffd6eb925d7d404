import assert from 'node:assert/strict'
import { test } from 'node:test'
import Database from 'better-sqlite3'
import { createActivityQueries } from '#adapters/sql/accounting/activity-queries.ts'
import { migrateState } from '#adapters/sql/migrate-state.ts'
import { sqliteDialect } from '#adapters/sql/migrations/migration.ts'
import { activityKinds } from '#core/activity.ts'
import { aChange } from '../../../tests/support/values.ts'
import { createSqliteKysely } from './kysely-on-sqlite.ts'

test('a page of the activity log is read in the order of an index, for one item by the index of items', async () => {
  const texts: string[] = []
  const database = new Database(':memory:', { verbose: text => texts.push(String(text)) })
  const db = createSqliteKysely(database, 'immediate')
  await migrateState(db, { dialect: sqliteDialect })
  const queries = createActivityQueries(db)
  const item = { kind: 'cohort', projectId: 1, itemId: '7', itemName: 'Beta' } as const
  await queries.recordActivity({ ...item, activity: 'created', changes: [] }, aChange())

  const planOf = async (query: object) => {
    texts.length = 0
    await queries.listActivity({ projectId: 1, kinds: activityKinds, limit: 9, ...query })
    const plans = texts.map(text => database.prepare<[], { detail: string }>(`EXPLAIN QUERY PLAN ${text}`).all())
    return plans.flat().map(({ detail }) => detail)
  }
  for (const [query, index] of [
    [{}, 'activity_log_project'],
    [{ kinds: ['cohort'], belowId: 5 }, 'activity_log_project'],
    [{ itemId: '7' }, 'activity_log_item'],
    [{ itemId: '7', kinds: ['cohort'], belowId: 5 }, 'activity_log_item'],
  ] as const) {
    const plan = await planOf(query)
    assert.match(plan[0]!, new RegExp(`^SEARCH activity_log USING (COVERING )?INDEX ${index} `))
    assert.ok(!plan.some(detail => detail.startsWith('SCAN activity_log') && !detail.includes(index)), plan.join(', '))
    assert.ok(!plan.some(detail => detail.includes('TEMP B-TREE')), plan.join(', '))
  }
  await db.destroy()
})
