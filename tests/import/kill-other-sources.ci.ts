import { killSuite } from '../support/killed-imports/kill-suite.ts'

killSuite(['ga4', 'matomo', 'plausible', 'generic', 'pendo', 'statsig'])
