import { readFileSync } from 'node:fs'
import { noPostgres, startPostgres } from '../support/postgres.ts'
import { conformanceSuite, definitionsAlone, runVectors, vectorFiles, without } from './conformance-suite.ts'

// Without those that ask definitions alone or are decided at the edge: PostgreSQL shows nothing new of them, and
// `npm run vectors` has them.

const leftOut = [...definitionsAlone(), ...decidedAtTheEdge()]

async function run(): Promise<string> {
  const postgres = await startPostgres()
  try {
    return await runVectors([without(leftOut)], { DATABASE_URL: postgres.url })
  } finally {
    await postgres.stop()
  }
}

conformanceSuite('PostgreSQL', noPostgres(), run, leftOut)

/** Ids of the ingestion vectors that are about a request and its answer. */
function decidedAtTheEdge(): string[] {
  const groups = new Set(['transport', 'shape', 'coerce', 'auth', 'timestamp', 'v1', 'replay', 'sink'])
  const { vectors } = JSON.parse(readFileSync(vectorFiles[1]!, 'utf8')) as { vectors: { id: string; group: string }[] }
  return vectors.filter(({ group }) => groups.has(group)).map(({ id }) => id)
}
