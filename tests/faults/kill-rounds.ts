// Kills processes at random moments under load and checks that every acknowledged event is stored exactly once.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isAlive } from '../support/child-processes.ts'
import { eventually } from '../support/eventually.ts'
import { type Pennon, startPennon } from '../support/pennon.ts'
import { type Findings, findFaults, patientTarget, startCheckedLoad } from './checked-load.ts'

export const victims = ['tree', 'work', 'events', 'serve'] as const
export type Victim = (typeof victims)[number]

export interface KillRoundsOptions {
  readonly rounds: number
  /** More environment variables for the instance, such as the place of its state. */
  readonly settings?: Readonly<Record<string, string>>
  /** Also kills something outside the instance in the middle of each round; resolves when that is running again. */
  readonly disturb?: () => Promise<void>
  readonly random: () => number
  readonly log: (line: string) => void
}

export interface KillRoundsResult extends Findings {
  readonly acknowledgedCount: number
}

/** One load runs through all rounds; its senders repeat unanswered requests at the front's current address. */
export async function runKillRounds(options: KillRoundsOptions): Promise<KillRoundsResult> {
  const { rounds, random, log, settings = {}, disturb } = options
  const dataFolder = mkdtempSync(join(tmpdir(), 'pennon-kill-'))
  const start = () => startPennon({ dataFolder, settings, waitForProcessing: false })
  let pennon = await start()
  const load = startCheckedLoad(() => patientTarget(pennon), { pauseMs: sendersRestMs })
  try {
    for (let round = 0; round < rounds; round++) {
      const victim = victims[Math.floor(random() * victims.length)]!
      // The last victim needs time to restart, and without load no event can be lost during that time.
      const before = load.acknowledgedCount()
      const isUnderLoad = () => load.acknowledgedCount() >= before + loadOfRoundMin
      await eventually(isUnderLoad, { what: 'the load of a round' })
      await pause(50 + random() * 600)
      await disturb?.()
      await kill(pennon, victim)
      if (victim === 'work' || victim === 'events') await pause(100 + random() * 300)
      if (victim === 'tree' || victim === 'serve') pennon = await start()
      log(`round ${round + 1}/${rounds}: killed ${victim}, ${load.acknowledgedCount()} events acknowledged`)
    }
    const findings = await findFaults(patientTarget(pennon), [await load.stop()])
    return { ...findings, acknowledgedCount: load.acknowledgedCount() }
  } finally {
    load.abandon()
    await pennon.killTree()
    rmSync(dataFolder, { recursive: true, force: true })
  }
}

/** Slow enough that the events of hundreds of rounds can be counted within minutes. */
const sendersRestMs = 20
/** Events. */
const loadOfRoundMin = 30

async function kill(pennon: Pennon, victim: Victim): Promise<void> {
  if (victim === 'tree') return pennon.killTree()
  const pid = victim === 'serve' ? pennon.pid : pennon.childPids()[victim]
  if (pid === undefined) return // still restarting after the previous round
  process.kill(pid, 'SIGKILL')
  await eventually(() => !isAlive(pid), { what: `the end of ${victim}` })
}

function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}
