// A search of a long activity log must hold up no other search: one call looks at a bounded number of entries, found by
// one index, and the next call continues where it stopped.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { openPostgresManagementStore } from '#adapters/postgres/postgres-management-store.ts'
import { openStateForWriting } from '#adapters/sqlite/open-sqlite.ts'
import { openSqliteManagementStore } from '#adapters/sqlite/sqlite-management-store.ts'
import { computeAuthorNumber } from '#core/author.ts'
import type { ActivityQuery } from '#ports/state/activity-store.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import { noPostgres, startPostgres } from '../support/postgres.ts'
import { logger, migratedTemplate } from '../support/postgres-state.ts'
import { startedForTests } from '../support/started-for-tests.ts'
import { writeNewState } from '../support/state.ts'
import { tempDir } from '../support/temp-dir.ts'
import { aChange } from '../support/values.ts'

interface State {
  readonly store: ManagementStore
  run(text: string): Promise<unknown>
}

const [ada, bob] = [aChange('ada'), aChange('bob')]
const byAda = { by: [computeAuthorNumber(ada.by)] }

function testSearches(openState: (t: TestContext) => Promise<State>): void {
  it('searches a bounded number of entries at a time, and only those of the item or of the project', async t => {
    const { store, run } = await openState(t)
    const record = (itemId: string, projectId: number, change: typeof ada) => {
      const item = { kind: 'survey', projectId, itemId, itemName: '', activity: 'updated' } as const
      return store.recordActivity({ ...item, changes: [] }, change)
    }
    await record('rare', 1, ada)
    for (const projectId of [1, 2]) await record('frequent', projectId, bob)
    const columns = 'project_id, kind, item_id, item_name, activity, version, author, created_at, changes'
    for (let doubled = 0; doubled < 10; doubled++)
      await run(`INSERT INTO activity_log (${columns}) SELECT ${columns} FROM activity_log WHERE item_id = 'frequent'`)
    const search = async (over: Partial<ActivityQuery>) => {
      const pages: string[] = []
      for (let belowId: number | null | undefined; belowId !== null; ) {
        const query = { projectId: 1, kinds: ['survey'], limit: 9, ...over, ...(belowId && { belowId }) } as const
        const { results, nextBelowId } = await store.listActivity(query)
        pages.push(results.map(({ itemId }) => itemId).join(' '))
        belowId = nextBelowId
      }
      return pages
    }
    assert.deepEqual(await search({ ...byAda, projectId: null }), ['', 'rare'])
    assert.deepEqual(await search({ kinds: ['experiment'], projectId: null }), ['', ''])
    assert.deepEqual(await search(byAda), ['rare'])
    assert.deepEqual(await search({ ...byAda, projectId: null, itemId: 'rare' }), ['rare'])
    assert.deepEqual(await search({ ...byAda, itemId: 'frequent' }), ['', ''])
  })
}

describe('a search of a long activity log on SQLite', () => {
  testSearches(async t => {
    const dataFolder = tempDir(t)
    await writeNewState(dataFolder)
    const store = openSqliteManagementStore({ dataFolder, access: 'write' })
    const database = openStateForWriting(dataFolder, 1_000)
    t.after(async () => {
      database.close()
      await store.close()
    })
    return { store, run: async text => database.exec(text) }
  })
})

describe('a search of a long activity log on PostgreSQL', { skip: noPostgres() }, () => {
  const postgres = startedForTests(startPostgres)

  testSearches(async t => {
    const url = await migratedTemplate(postgres)
    const store = openPostgresManagementStore({ url, logger })
    t.after(() => store.close())
    return { store, run: text => postgres.query(text, [], url) }
  })
})
