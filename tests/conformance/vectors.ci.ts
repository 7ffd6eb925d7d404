import { conformanceSuite, definitionsAlone, runVectors, without } from './conformance-suite.ts'

// Of the vectors that need only definitions, every fifth runs here: `npm test` runs all of them on the same core and wire,
// and `npm run vectors` on whole instances.
const leftOut = definitionsAlone().filter((_, index) => index % 5 !== 0)

conformanceSuite('SQLite', false, () => runVectors([without(leftOut)], { DATABASE_URL: undefined }))
