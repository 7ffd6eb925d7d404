import { noPostgres, startPostgres } from '../support/postgres.ts'
import { conformanceSuite, runVectors } from './conformance-suite.ts'

conformanceSuite('SQLite', false, ids => runVectors(ids, { DATABASE_URL: undefined }))

conformanceSuite('PostgreSQL', noPostgres(), async ids => {
  const postgres = await startPostgres()
  try {
    return await runVectors(ids, { DATABASE_URL: postgres.url })
  } finally {
    await postgres.stop()
  }
})
