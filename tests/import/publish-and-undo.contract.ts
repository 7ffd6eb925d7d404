// The state contract for import jobs, from their first event to their undo.

import type { OpenSqlState } from '../support/state.ts'
import { implicitJobsContract } from './jobs/implicit-jobs.contract.ts'
import { importedAgainContract } from './jobs/imported-again.contract.ts'
import { jobLifeContract } from './jobs/job-life.contract.ts'
import { knownPersonsContract } from './jobs/known-persons.contract.ts'
import { randomHistoriesContract } from './jobs/random-histories.contract.ts'
import { randomJobsContract } from './jobs/random-jobs.contract.ts'
import { repairedPersonsContract } from './jobs/repaired-persons.contract.ts'
import { seenPersonsContract } from './jobs/seen-persons.contract.ts'
import { twoJobsContract } from './jobs/two-jobs.contract.ts'
import { undoRacesContract } from './jobs/undo-races.contract.ts'
import { undoneJobsContract } from './jobs/undone-jobs.contract.ts'
import { unreadableEventsContract } from './jobs/unreadable-events.contract.ts'
import { waitingJobsContract } from './jobs/waiting-jobs.contract.ts'
import { pendingJobsContract } from './pending-jobs.contract.ts'

/** `numRuns` is the number of random runs per property. */
export const importJobContracts: readonly ((engine: string, open: OpenSqlState, numRuns: number) => void)[] = [
  randomJobsContract,
  importedAgainContract,
  jobLifeContract,
  knownPersonsContract,
  implicitJobsContract,
  twoJobsContract,
  randomHistoriesContract,
  undoneJobsContract,
  undoRacesContract,
  unreadableEventsContract,
  waitingJobsContract,
  seenPersonsContract,
  repairedPersonsContract,
  pendingJobsContract,
]
