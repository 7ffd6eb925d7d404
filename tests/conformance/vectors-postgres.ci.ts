import { noPostgres, startPostgres } from '../support/postgres.ts'
import {
  conformanceSuite,
  convertedByCommand,
  decidedAtTheEdge,
  definitionsAlone,
  runVectors,
  statefulOn,
  without,
} from './conformance-suite.ts'

// Of the vectors that need a state, the half that does not run on SQLite. To those that need only definitions, are decided at
// the edge or are converted by a command, PostgreSQL makes no difference.

const leftOut = [...definitionsAlone(), ...decidedAtTheEdge(), ...convertedByCommand(), ...statefulOn().sqlite]

async function run(): Promise<string> {
  const postgres = await startPostgres()
  try {
    return await runVectors([without(leftOut)], { DATABASE_URL: postgres.url })
  } finally {
    await postgres.stop()
  }
}

conformanceSuite('PostgreSQL', noPostgres(), run, leftOut)
