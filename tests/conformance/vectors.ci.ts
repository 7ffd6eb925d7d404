import {
  conformanceSuite,
  convertedByCommand,
  decidedAtTheEdge,
  definitionsAlone,
  processedOn,
  runVectors,
  without,
} from './conformance-suite.ts'

// Runs one in ten of the vectors that need only definitions, are decided at the edge or are converted by a command. `npm
// test` runs all of these in memory, on the same core and wire, and `npm run vectors` runs every vector on whole instances.
const inMemory = [...definitionsAlone(), ...decidedAtTheEdge(), ...convertedByCommand()]
const leftOut = [...inMemory.filter((_, index) => index % 10 !== 0), ...processedOn().postgres]

conformanceSuite('SQLite', false, () => runVectors([without(leftOut)], { DATABASE_URL: undefined }), leftOut)
