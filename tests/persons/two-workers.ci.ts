import { after, test } from 'node:test'
import { noPostgres, startPostgres } from '../support/postgres.ts'
import { migratedDatabases, postgresStates } from '../support/postgres-state.ts'
import { twoWorkersTest } from './two-workers.model.ts'

const skip = noPostgres()
if (skip === false) {
  const postgres = await startPostgres()
  after(() => postgres.stop())
  twoWorkersTest('postgres', postgresStates(postgres, await migratedDatabases(postgres)), 100)
} else test('two workers on PostgreSQL', { skip }, () => {})
