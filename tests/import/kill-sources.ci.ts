// An export of every source is imported straight, and again with the importer killed ten times, and a third time. Whatever
// is asked of the projects, they answer the same.

import { killSuite } from '../support/killed-imports/kill-suite.ts'

killSuite({ recordCount: 20_000, kills: 10 })
