// For each source: an export is imported straight, and again with the importer killed ten times, and a third time. Whatever
// is asked of the projects, they answer the same. The other sources are in `kill-other-sources.ci.ts`; exports of 20,000
// and a million records take too long for every run: `npm run soak -- import-kills`.

import { killSuite } from '../support/killed-imports/kill-suite.ts'

killSuite(['posthog', 'mixpanel', 'amplitude', 'segment', 'heap'])
