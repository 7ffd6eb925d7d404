// `npm run soak -- NAME`: tests that take too long for every run. They are run by hand, and the figures are recorded.

import { isDeepStrictEqual } from 'node:util'
import { runFuzz } from '../capture/fuzz/run-fuzz.ts'
import { nothingFound } from '../faults/checked-load.ts'
import { runKillRounds } from '../faults/kill-rounds.ts'
import { seededRandom, testSeed } from '../support/seeded-random.ts'
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
import { runTrendsSpeed } from './trends-speed.ts'
import { runUndo } from './undo.ts'
import { runUsageSpeed } from './usage-speed.ts'

const ofSource = process.env.SOURCE === undefined ? {} : { sourceName: process.env.SOURCE }

const soaks: Record<string, () => Promise<boolean>> = {
  kill: async () => {
    const seed = testSeed()
    const rounds = Number(process.env.ROUNDS ?? 200)
    console.log(`SEED=${seed}`)
    const { acknowledgedCount, ...findings } = await runKillRounds({
      rounds,
      random: seededRandom(seed),
      log: console.log,
    })
    console.log(`${acknowledgedCount} acknowledged; ${JSON.stringify(findings)}`)
    return isDeepStrictEqual(findings, nothingFound)
  },
  faults: () => runFaults(console.log),
  flood: () =>
    runFlood({
      senderCount: Number(process.env.SENDERS ?? 200),
      mebibytes: Number(process.env.MEBIBYTES ?? 19),
      seconds: Number(process.env.SECONDS ?? 30),
      log: console.log,
    }),
  'one-project': runOneProject,
  'log-ins': runLogIns,
  evaluation: async () => {
    const seed = testSeed()
    console.log(`SEED=${seed}`)
    return runEvaluations({ pairCount: Number(process.env.PAIRS ?? 1_000_000), seed, log: console.log })
  },
  persons: async () => {
    const seed = testSeed()
    console.log(`SEED=${seed}`)
    return runPersons({ count: Number(process.env.STREAMS ?? 10_000), seed, log: console.log })
  },
  merges: async () => {
    const seed = testSeed()
    console.log(`SEED=${seed}`)
    return runMerges({ count: Number(process.env.ROUNDS ?? 1_000), seed, log: console.log })
  },
  fuzz: async () => {
    const seed = testSeed()
    const requestCount = Number(process.env.REQUESTS ?? 200_000)
    const cpuMsMax = Number(process.env.CPU_MS ?? 50)
    console.log(`SEED=${seed}`)
    console.log(JSON.stringify(await runFuzz({ requestCount, seed, cpuMsMax, log: console.log }), null, 2))
    return true
  },
  insights: () => runInsights(),
  trends: () => runTrendsSpeed({ eventCount: Number(process.env.EVENTS ?? 10_000_000), log: console.log }),
  usage: () => runUsageSpeed({ eventCount: Number(process.env.EVENTS ?? 10_000_000), log: console.log }),
  'trends-live': () =>
    runInsightsBesideCapture({
      eventCount: Number(process.env.EVENTS ?? 10_000_000),
      askerCount: 10,
      seconds: Number(process.env.SECONDS ?? 30),
      log: console.log,
    }),
  exports: () => runExports({ eventCount: Number(process.env.EVENTS ?? 10_000_000), log: console.log }),
  'import-live': () =>
    runImportBesideLive({
      eventCount: Number(process.env.EVENTS ?? 5_000_000),
      isPinned: process.env.PIN === '1',
      log: console.log,
    }),
  'import-kills': async () => {
    const seed = testSeed()
    console.log(`SEED=${seed}`)
    const count = Number(process.env.EVENTS ?? 1_000_000)
    const kills = Number(process.env.KILLS ?? 100)
    return runImportKills({ count, kills, seed, ...ofSource, log: console.log })
  },
  undo: () =>
    runUndo({
      personCount: Number(process.env.PERSONS ?? 20_000),
      liveEventCount: Number(process.env.EVENTS ?? 1_000_000),
      importedPerPerson: Number(process.env.IMPORTED ?? 3),
      log: console.log,
    }),
  'synthetic-exports': () => {
    const folder = process.env.FOLDER ?? 'synthetic-exports'
    const count = Number(process.env.EVENTS ?? 1_000_000)
    return writeExports(folder, { count, seed: Number(process.env.SEED ?? 1), ...ofSource, log: console.log })
  },
  backlog: async () => {
    const seed = testSeed()
    const eventCount = Number(process.env.EVENTS ?? 3_000_000)
    const visitorCount = Number(process.env.VISITORS ?? 200_000)
    console.log(`SEED=${seed}`)
    return runBacklog({ eventCount, visitorCount, seed, log: console.log })
  },
}

const soak = soaks[process.argv[2] ?? '']
if (soak === undefined) {
  console.error(`Usage: npm run soak -- NAME. Names: ${Object.keys(soaks).join(', ')}. SEED=… repeats a run.`)
  process.exit(2)
}
process.exit((await soak()) ? 0 : 1)
