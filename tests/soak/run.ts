// `npm run soak -- NAME`: tests that take too long for every run. They are run by hand, and the figures are recorded.

import { isDeepStrictEqual } from 'node:util'
import { runFuzz } from '../capture/fuzz/run-fuzz.ts'
import { nothingFound } from '../faults/checked-load.ts'
import { runKillRounds } from '../faults/kill-rounds.ts'
import { seededRandom } from '../support/seeded-random.ts'
import { runBacklog } from './backlog.ts'
import { runEvaluations } from './evaluations.ts'
import { runExports } from './exports.ts'
import { runFaults } from './faults.ts'
import { runFlood } from './flood.ts'
import { runImportBesideLive } from './import-beside-live.ts'
import { runImportKills, writeExports } from './import-kills.ts'
import { runInsights } from './insights.ts'
import { runInsightsBesideCapture } from './insights-beside-capture.ts'
import { runLogIns } from './log-ins.ts'
import { runOneProject } from './one-project.ts'
import { runMerges, runPersons } from './persons.ts'
import { numberOf, printedSeed } from './settings.ts'
import { runTrendsSpeed } from './trends-speed.ts'
import { runUndo } from './undo.ts'
import { runUsageSpeed } from './usage-speed.ts'

const soaks: Record<string, () => Promise<boolean>> = {
  kill: async () => {
    const random = seededRandom(printedSeed())
    const rounds = numberOf('ROUNDS', 200)
    const { acknowledgedCount, ...findings } = await runKillRounds({ rounds, random, log: console.log })
    console.log(`${acknowledgedCount} acknowledged; ${JSON.stringify(findings)}`)
    return isDeepStrictEqual(findings, nothingFound)
  },
  faults: runFaults,
  flood: runFlood,
  'one-project': runOneProject,
  'log-ins': runLogIns,
  evaluation: runEvaluations,
  persons: runPersons,
  merges: runMerges,
  fuzz: async () => {
    const options = {
      seed: printedSeed(),
      requestCount: numberOf('REQUESTS', 200_000),
      cpuMsMax: numberOf('CPU_MS', 50),
    }
    console.log(JSON.stringify(await runFuzz({ ...options, log: console.log }), null, 2))
    return true
  },
  insights: runInsights,
  trends: runTrendsSpeed,
  usage: runUsageSpeed,
  'trends-live': runInsightsBesideCapture,
  exports: runExports,
  'import-live': runImportBesideLive,
  'import-kills': runImportKills,
  undo: runUndo,
  'synthetic-exports': writeExports,
  backlog: runBacklog,
}

const soak = soaks[process.argv[2] ?? '']
if (soak === undefined) {
  console.error(`Usage: npm run soak -- NAME. Names: ${Object.keys(soaks).join(', ')}. SEED=… repeats a run.`)
  process.exit(2)
}
process.exit((await soak()) ? 0 : 1)
