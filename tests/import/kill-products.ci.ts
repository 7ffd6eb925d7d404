// For each source: an export of 20,000 records is imported straight, and again with the importer killed ten times, and a
// third time. Whatever is asked of the projects, they answer the same. The other sources are in `kill-other-sources.ci.ts`.

import { killSuite } from '../support/killed-imports/kill-suite.ts'

killSuite(['posthog', 'mixpanel', 'amplitude', 'segment', 'heap'])
