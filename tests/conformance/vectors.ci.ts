import { conformanceSuite, definitionsAlone, runVectors, without } from './conformance-suite.ts'

// Of those that ask definitions alone every fifth: `npm test` asks all of them of the same core and wire, and
// `npm run vectors` of whole instances.
const leftOut = definitionsAlone().filter((_, index) => index % 5 !== 0)

conformanceSuite('SQLite', false, () => runVectors([without(leftOut)], { DATABASE_URL: undefined }))
