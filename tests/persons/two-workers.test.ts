import { openSqliteState } from '../support/state.ts'
import { twoWorkersTest } from './two-workers.model.ts'

twoWorkersTest('sqlite', openSqliteState)
