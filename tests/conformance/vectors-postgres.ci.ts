import { readFileSync } from 'node:fs'
import { noPostgres, startPostgres } from '../support/postgres.ts'
import { conformanceSuite, runVectors, vectorFiles } from './conformance-suite.ts'

// Without those that ask definitions alone or are decided at the edge: PostgreSQL shows nothing new of them, and
// `npm run vectors` has them.

conformanceSuite('PostgreSQL', noPostgres(), async () => {
  const postgres = await startPostgres()
  try {
    return await runVectors([`--only=^(?!(?:${[...definitionsAlone(), ...decidedAtTheEdge()].join('|')})$)`], {
      DATABASE_URL: postgres.url,
    })
  } finally {
    await postgres.stop()
  }
})

/** Ids of the evaluation vectors without persons, groups, cohorts or settings of a project. */
function definitionsAlone(): string[] {
  const { flag_vectors: flags, decoding_vectors: decoding } = JSON.parse(
    readFileSync(vectorFiles[0]!, 'utf8'),
  ) as Record<string, { id: string; stored?: object; project?: object }[]>
  return [...flags!, ...decoding!]
    .filter(({ stored, project }) => stored === undefined && project === undefined)
    .map(({ id }) => id)
}

/** Ids of the ingestion vectors that are about a request and its answer. */
function decidedAtTheEdge(): string[] {
  const groups = new Set(['transport', 'shape', 'coerce', 'auth', 'timestamp', 'v1', 'replay', 'sink'])
  const { vectors } = JSON.parse(readFileSync(vectorFiles[1]!, 'utf8')) as { vectors: { id: string; group: string }[] }
  return vectors.filter(({ group }) => groups.has(group)).map(({ id }) => id)
}
