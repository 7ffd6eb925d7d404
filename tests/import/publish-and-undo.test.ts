import { openSqliteImportState } from '../support/import-world.ts'
import { runs } from '../support/nightly.ts'
import { importJobContracts } from './publish-and-undo.contract.ts'

for (const contract of importJobContracts) contract('sqlite', openSqliteImportState, runs(10, 300))
