// The contract of a state for import jobs: from their first event to their undoing.

import type { OpenImportState } from '../support/import-world.ts'
import { heldLinksContract } from './jobs/held-links.contract.ts'
import { importedAgainContract } from './jobs/imported-again.contract.ts'
import { jobLifeContract } from './jobs/job-life.contract.ts'
import { jobsOfDaysContract } from './jobs/jobs-of-days.contract.ts'
import { knownPersonsContract } from './jobs/known-persons.contract.ts'
import { leftBehindContract } from './jobs/left-behind.contract.ts'
import { mergedPersonsContract } from './jobs/merged-persons.contract.ts'
import { randomJobsContract } from './jobs/random-jobs.contract.ts'
import { replayModelContract } from './jobs/replay-model.contract.ts'
import { twoJobsContract } from './jobs/two-jobs.contract.ts'
import { unreadableEventsContract } from './jobs/unreadable-events.contract.ts'
import { valuesBeneathContract } from './jobs/values-beneath.contract.ts'
import { waitingJobsContract } from './jobs/waiting-jobs.contract.ts'

/** @param numRuns random runs of each property. */
export function importJobsContract(engine: string, open: OpenImportState, numRuns: number): void {
  randomJobsContract(engine, open, numRuns)
  importedAgainContract(engine, open)
  jobLifeContract(engine, open)
  knownPersonsContract(engine, open)
  leftBehindContract(engine, open)
  heldLinksContract(engine, open)
  jobsOfDaysContract(engine, open)
  twoJobsContract(engine, open, numRuns)
  replayModelContract(engine, open, numRuns)
  mergedPersonsContract(engine, open)
  valuesBeneathContract(engine, open)
  unreadableEventsContract(engine, open)
  waitingJobsContract(engine, open)
}
