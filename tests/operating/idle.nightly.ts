// The cost of an idle instance: each wake-up of a thread is work and keeps a processor from sleeping. The test counts
// wake-ups, and only prints the CPU share, which depends on other programs on the machine.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startPennonFor } from '../support/pennon.ts'

const settleMs = 10_000
const measureMs = 10_000
const windowsMax = 4
/** Threads in which V8 collects the garbage of the start, at any time. */
const collecting = /^(?:node-V8Worker|DelayedTaskSche) /
/** Limits for the wake-ups per second of all other threads of a process. */
const wakeUpsMax: Record<string, number> = { serve: 25, work: 25, events: 80 }

interface Usage {
  readonly cpuTicks: number
  readonly wakeUpsOf: ReadonlyMap<string, number>
}

function usageOf(pid: number): Usage {
  const wakeUpsOf = new Map<string, number>()
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    const status = readFileSync(`/proc/${pid}/task/${task}/status`, 'utf8')
    const name = /^Name:\s*(.*)$/m.exec(status)![1]!
    wakeUpsOf.set(`${name} ${task}`, Number(/^voluntary_ctxt_switches:\s*(\d+)/m.exec(status)![1]))
  }
  // Skips the name, which may contain anything: user and system time are the 12th and 13th field after it.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return { cpuTicks: Number(fields[11]) + Number(fields[12]), wakeUpsOf }
}

it('an idle instance rarely wakes up', async t => {
  const pennon = await startPennonFor(t)
  const pids = { serve: pennon.pid, ...pennon.childPids() }
  await sleep(settleMs)
  // Work left by the start, such as merging its first rows, may take longer than the settling time on a slow machine.
  // An instance that never becomes idle is too busy in every window.
  let tooBusy: string[] = []
  for (let window = 1; window <= windowsMax; window++) {
    tooBusy = await busyProcesses(pids, line => t.diagnostic(`window ${window}: ${line}`))
    if (tooBusy.length === 0) return
  }
  assert.fail(`never quiet in ${windowsMax} windows; in the last one:\n${tooBusy.join('\n')}`)
})

/** Measures one window and returns a line for each process that woke up too often. */
async function busyProcesses(pids: Record<string, number>, log: (line: string) => void): Promise<string[]> {
  const before = Object.entries(pids).map(([name, pid]) => [name, pid, usageOf(pid)] as const)
  await sleep(measureMs)
  return before.flatMap(([name, pid, { cpuTicks, wakeUpsOf }]) => {
    const now = usageOf(pid)
    const seconds = measureMs / 1_000
    const perSecond = [...now.wakeUpsOf]
      .map(([thread, count]) => [thread, (count - (wakeUpsOf.get(thread) ?? 0)) / seconds] as const)
      .filter(([, count]) => count > 0)
      .toSorted(([, a], [, b]) => b - a)
    const all = perSecond.reduce((sum, [thread, count]) => (collecting.test(thread) ? sum : sum + count), 0)
    const most = perSecond.slice(0, 8).map(([thread, count]) => `${thread}: ${count.toFixed(1)}`)
    const share = (now.cpuTicks - cpuTicks) / seconds // a tick is a hundredth of a second
    const line = `${name}: ${share.toFixed(2)} % of a core, ${all.toFixed(0)} wake-ups a second (${most.join(', ')})`
    log(line)
    return all < wakeUpsMax[name]! ? [] : [line]
  })
}
