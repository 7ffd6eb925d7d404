import {
  conformanceSuite,
  decidedAtTheEdge,
  definitionsAlone,
  processedOn,
  runVectors,
  without,
} from './conformance-suite.ts'

// Runs one in ten of the vectors that need only definitions or are decided at the edge. `npm test` runs all of these
// in memory, on the same core and wire, and `npm run vectors` runs every vector on whole instances.
const inMemory = [...definitionsAlone(), ...decidedAtTheEdge()]
const leftOut = [...inMemory.filter((_, index) => index % 10 !== 0), ...processedOn().postgres]

conformanceSuite('SQLite', false, () => runVectors([without(leftOut)], { DATABASE_URL: undefined }), leftOut)
