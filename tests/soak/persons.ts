// The model tests of persons and groups with many more random streams and rounds than a normal run has time for.

import fc from 'fast-check'
import { runStream, stream } from '../persons/person-streams.ts'
import { runMergeRounds } from '../persons/two-workers.model.ts'
import { noPostgres, startPostgres } from '../support/postgres.ts'
import { migratedDatabases, postgresStates } from '../support/postgres-state.ts'
import { numberOf, printedSeed } from './settings.ts'

/** Compares streams with crashes and repeats with the model. @throws Error with the smallest stream that fails. */
export async function runPersons(): Promise<boolean> {
  const seed = printedSeed()
  let doneCount = 0
  let eventCount = 0
  const property = fc.asyncProperty(stream, async made => {
    await runStream(made)
    eventCount += made.events.length
    if (++doneCount % 1_000 === 0) console.log(`${doneCount} streams, ${eventCount} events`)
  })
  await fc.assert(property, { numRuns: numberOf('STREAMS', 10_000), seed })
  return true
}

/** Two workers on one PostgreSQL whose events merge the same ids concurrently. @throws Error naming the round. */
export async function runMerges(): Promise<boolean> {
  const seed = printedSeed()
  const reason = noPostgres()
  if (reason !== false) throw new Error(reason)
  const endings: (() => unknown)[] = []
  const t = { after: (ending: () => unknown) => endings.push(ending), signal: new AbortController().signal }
  const postgres = await startPostgres()
  try {
    const open = postgresStates(postgres, await migratedDatabases(postgres))
    const harness = await open(t as unknown as Parameters<typeof open>[0])
    const roundCount = numberOf('ROUNDS', 1_000)
    await runMergeRounds(harness, { roundCount, seed, signal: t.signal, log: console.log })
    return true
  } finally {
    for (const ending of endings) await ending()
    await postgres.stop()
  }
}
