// An export is imported straight, and again with the importer killed ten times, and a third time. Whatever is asked of the
// projects, they answer the same. All sources take some ten minutes of processor time, which two processors do not have
// beside the other tests: there a run takes four of the sources, by its seed.

import { availableParallelism } from 'node:os'
import { killSuite } from '../support/killed-imports/kill-suite.ts'
import { syntheticSources } from '../support/synthetic-exports/synthetic-exports.ts'

const sourceCount = availableParallelism() < 4 ? 4 : syntheticSources.length

killSuite({ sourceCount: Number(process.env.SOURCES ?? sourceCount), recordCount: 20_000, kills: 10 })
