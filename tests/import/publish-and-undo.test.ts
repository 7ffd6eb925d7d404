import { runs } from '../support/nightly.ts'
import { openSqliteState } from '../support/state.ts'
import { importJobContracts } from './publish-and-undo.contract.ts'

for (const contract of importJobContracts) contract('sqlite', openSqliteState, runs(5, 300))
