import { openSqliteImportState } from '../support/import-world.ts'
import { pendingJobsContract } from './pending-jobs.contract.ts'
import { importJobsContract } from './publish-and-undo.contract.ts'

importJobsContract('sqlite', openSqliteImportState, Number(process.env.IMPORT_RUNS ?? 10))
pendingJobsContract('sqlite', openSqliteImportState)
