import { conformanceSuite, runVectors } from './conformance-suite.ts'

conformanceSuite('SQLite', false, () => runVectors([], { DATABASE_URL: undefined }))
