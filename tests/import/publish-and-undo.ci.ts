// More random import jobs than the unit tests have time for.

import { openSqliteImportState } from '../support/import-world.ts'
import { randomJobsContract } from './jobs/random-jobs.contract.ts'
import { replayModelContract } from './jobs/replay-model.contract.ts'
import { twoJobsContract } from './jobs/two-jobs.contract.ts'

const numRuns = Number(process.env.IMPORT_RUNS ?? 40)
randomJobsContract('sqlite', openSqliteImportState, numRuns)
twoJobsContract('sqlite', openSqliteImportState, numRuns)
replayModelContract('sqlite', openSqliteImportState, numRuns)
