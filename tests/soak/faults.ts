// The scenarios of `tests/faults/faults.ci.ts`, each for as long as such a fault lasts in practice.

import { isDeepStrictEqual } from 'node:util'
import { findFaults, nothingFound, patientTarget, startCheckedLoad } from '../faults/checked-load.ts'
import { jumpClock } from '../faults/clock-jumps.ts'
import {
  flagOfScene,
  killEngine,
  lockLog,
  lockState,
  type Scene,
  settle,
  stopWorker,
} from '../faults/fault-scenarios.ts'
import { startPennon } from '../support/pennon.ts'

const scenarios: readonly [name: string, run: (scene: Scene, seconds: number) => Promise<void>, seconds: number][] = [
  ['worker stopped', stopWorker, 30],
  ['event store killed', killEngine, 60],
  ['state locked', lockState, 5],
  ['state locked', lockState, 30],
  ['log locked', lockLog, 15],
]

/** @returns whether nothing was lost, duplicated or reordered. */
export async function runFaults(): Promise<boolean> {
  process.env.NODE_ENV = 'test'
  const afterJumps = await jumpClock(5)
  console.log(`clock jumps: ${JSON.stringify(afterJumps)}`)
  const pennon = await startPennon({ settings: { PENNON_LOG_LEVEL: 'silent' } })
  const load = startCheckedLoad(() => patientTarget(pennon), { pauseMs: 30 })
  try {
    await pennon.api('POST', '/api/projects/@current/feature_flags/', flagOfScene)
    for (const [name, run, seconds] of scenarios) {
      await run({ pennon, load, flagsMsMax: 250 }, seconds)
      const startedMs = performance.now()
      await settle({ pennon, load })
      const settledMs = Math.round(performance.now() - startedMs)
      console.log(
        `${name} for ${seconds} s: all parts ready ${settledMs} ms later, ${load.acknowledgedCount()} acknowledged`,
      )
    }
    const findings = await findFaults(patientTarget(pennon), [await load.stop()])
    console.log(`${load.acknowledgedCount()} acknowledged; ${JSON.stringify(findings)}`)
    return isDeepStrictEqual(findings, nothingFound) && isDeepStrictEqual(afterJumps, nothingFound)
  } finally {
    load.abandon()
    await pennon.stop()
  }
}
