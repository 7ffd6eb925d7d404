import { openSqliteState } from '../support/state-harness.ts'
import { twoWorkersTest } from './two-workers.model.ts'

twoWorkersTest('sqlite', openSqliteState)
