import { openSqliteState } from '../support/state.ts'
import { chunkStoreModelTest } from './chunk-store.model.ts'

chunkStoreModelTest('sqlite', openSqliteState, 150)
