import { conformanceSuite, definitionsAlone, runVectors, without } from './conformance-suite.ts'

// Every fifth of the vectors that need only definitions runs here: `npm test` runs all of them on the same core and wire, and
// `npm run vectors` runs them on whole instances.
const leftOut = definitionsAlone().filter((_, index) => index % 5 !== 0)

conformanceSuite('SQLite', false, () => runVectors([without(leftOut)], { DATABASE_URL: undefined }), leftOut)
