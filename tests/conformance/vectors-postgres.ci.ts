import { noPostgres, startPostgres } from '../support/postgres.ts'
import {
  conformanceSuite,
  convertedByCommand,
  decidedAtTheEdge,
  definitionsAlone,
  processedOn,
  runVectors,
  without,
} from './conformance-suite.ts'

// Without the vectors that need only definitions, are decided at the edge or are converted by a command: PostgreSQL makes no
// difference to them.

const leftOut = [...definitionsAlone(), ...decidedAtTheEdge(), ...convertedByCommand(), ...processedOn().sqlite]

async function run(): Promise<string> {
  const postgres = await startPostgres()
  try {
    return await runVectors([without(leftOut)], { DATABASE_URL: postgres.url })
  } finally {
    await postgres.stop()
  }
}

conformanceSuite('PostgreSQL', noPostgres(), run, leftOut)
