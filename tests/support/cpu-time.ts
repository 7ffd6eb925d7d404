// Measures work by CPU time, which a busy machine hardly changes. A test compares two pieces of work of the same run,
// never one with a number of milliseconds, and only where a fault exceeds the bound many times over. Where calls, steps
// or bytes can be counted, tests count those instead.

import { readFileSync } from 'node:fs'

/** User and system CPU time of a process so far, all threads, in ms; a multiple of 10. For figures that are printed. */
export function processCpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

/** The clock moves in kernel ticks of up to 10 ms, so work shorter than a tick may show as none or as a whole tick. */
const clockMs = 20
const runsMax = 5

/** CPU time of this thread in ms: the least of several runs, since garbage collection and compilation vary. */
function leastCpuMs(work: () => void): number {
  return Math.min(...Array.from({ length: runsMax }, () => cpuMs(work)))
}

/** CPU time of this thread in ms. */
export function cpuMs(work: () => void): number {
  const before = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}

/**
 * Whether work takes at most `times` as long as a reference, in at least one of several runs. So that the answer does
 * not depend on the machine, faulty work has to take more than 200 ms and exceed the bound many times over.
 */
export function takesAtMost(times: number, work: () => void, reference: () => void): boolean {
  const mostMs = times * leastCpuMs(reference) + clockMs
  for (let run = 0; run < runsMax; run++) if (cpuMs(work) <= mostMs) return true
  return false
}

const growth = 64

/**
 * Whether work on a text 64 times as long takes at most 4 × 64 times as long; quadratic work takes 4,096 times as long.
 * @param work makes the work on a text `times` as long as the shortest.
 */
export function isLinear(work: (times: number) => () => void): boolean {
  const [short, long] = [work(1), work(growth)]
  return takesAtMost(4, long, () => {
    for (let run = 0; run < growth; run++) short()
  })
}

/** Measures the longest turn of this thread's event loop in CPU time, however busy the machine is. */
export function watchTurns(): { end(): { turnMs: number } } {
  const threadMs = () => {
    const { user, system } = process.threadCpuUsage()
    return (user + system) / 1_000
  }
  let longestMs = 0
  let lastMs = threadMs()
  let isWatching = true
  const look = () => {
    const nowMs = threadMs()
    longestMs = Math.max(longestMs, nowMs - lastMs)
    lastMs = nowMs
    if (isWatching) setImmediate(look)
  }
  setImmediate(look)
  return {
    end: () => {
      isWatching = false
      return { turnMs: longestMs }
    },
  }
}
