// An export is imported straight, and again with the importer killed ten times, and a third time. Whatever is asked of the
// projects, they answer the same. A run takes two of the sources, by its seed; all of them, or a million records, take
// too long for every run: `npm run soak -- import-kills`.

import { killSuite } from '../support/killed-imports/kill-suite.ts'

killSuite({ sourceCount: 2, recordCount: 20_000, kills: 10 })
