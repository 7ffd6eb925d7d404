// The state contract for import jobs, from their first event to their undo.

import type { OpenSqlState } from '../support/state.ts'
import { heldLinksContract } from './jobs/held-links.contract.ts'
import { implicitJobsContract } from './jobs/implicit-jobs.contract.ts'
import { importedAgainContract } from './jobs/imported-again.contract.ts'
import { jobLifeContract } from './jobs/job-life.contract.ts'
import { knownPersonsContract } from './jobs/known-persons.contract.ts'
import { leftBehindContract } from './jobs/left-behind.contract.ts'
import { mergedPersonsContract } from './jobs/merged-persons.contract.ts'
import { randomJobsContract } from './jobs/random-jobs.contract.ts'
import { replayModelContract } from './jobs/replay-model.contract.ts'
import { seenPersonsContract } from './jobs/seen-persons.contract.ts'
import { twoJobsContract } from './jobs/two-jobs.contract.ts'
import { unreadableEventsContract } from './jobs/unreadable-events.contract.ts'
import { valuesBeneathContract } from './jobs/values-beneath.contract.ts'
import { waitingJobsContract } from './jobs/waiting-jobs.contract.ts'
import { pendingJobsContract } from './pending-jobs.contract.ts'

/** `numRuns` is the number of random runs per property. */
export const importJobContracts: readonly ((engine: string, open: OpenSqlState, numRuns: number) => void)[] = [
  randomJobsContract,
  importedAgainContract,
  jobLifeContract,
  knownPersonsContract,
  leftBehindContract,
  heldLinksContract,
  implicitJobsContract,
  twoJobsContract,
  replayModelContract,
  mergedPersonsContract,
  valuesBeneathContract,
  unreadableEventsContract,
  waitingJobsContract,
  seenPersonsContract,
  pendingJobsContract,
]
