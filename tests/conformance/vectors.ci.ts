import {
  conformanceSuite,
  convertedByCommand,
  decidedAtTheEdge,
  definitionsAlone,
  runVectors,
  statefulOn,
  without,
} from './conformance-suite.ts'

// Runs half of the vectors that need a state; the other half runs on PostgreSQL. Of those that need only definitions, are
// decided at the edge or are converted by a command it runs one in ten: `npm test` runs all of these in memory, on the same
// core and wire, and `npm run vectors` runs every vector on whole instances.
const inMemory = [...definitionsAlone(), ...decidedAtTheEdge(), ...convertedByCommand()]
const leftOut = [...inMemory.filter((_, index) => index % 10 !== 0), ...statefulOn().postgres]

conformanceSuite('SQLite', false, () => runVectors([without(leftOut)], { DATABASE_URL: undefined }), leftOut)
