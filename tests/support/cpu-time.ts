// Compares CPU times, for parsers without anything to count: other tests count calls, steps, characters or turns of the
// event loop. A busy machine may double the CPU time of some work through its caches and garbage collection. Therefore
// both pieces of work belong to one run, several runs may fail, and a fault exceeds the bound many times over.

import { readFileSync } from 'node:fs'

/** User and system CPU time of a process so far, all threads, in ms; a multiple of 10. Only for printed figures. */
export function processCpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

/** The clock advances in ticks of the kernel of up to this length: shorter work may show as zero or as a full tick. */
const tickMs = 10
const runsMax = 5

/** CPU time of this thread in ms: the minimum of several runs, since garbage collection and compilation vary. */
function leastCpuMs(work: () => void): number {
  return Math.min(...Array.from({ length: runsMax }, () => cpuMs(work)))
}

/** CPU time of this thread in ms. */
function cpuMs(work: () => void): number {
  const before = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}

/**
 * Whether work takes at most `times` as long as a reference, in at least one of several runs. Faulty work must take
 * more than 200 ms and several times the bound.
 */
export function takesAtMost(times: number, work: () => void, reference: () => void): boolean {
  const mostMs = times * Math.max(leastCpuMs(reference), tickMs) + tickMs
  for (let run = 0; run < runsMax; run++) if (cpuMs(work) <= mostMs) return true
  return false
}

const growth = 64

/**
 * Whether work on a text 64 times as long takes at most 16 × 64 times as long; quadratic work takes 4,096 times as
 * long.
 * @param work creates the work on a text `times` as long as the shortest.
 */
export function isLinear(work: (times: number) => () => void): boolean {
  const [short, long] = [work(1), work(growth)]
  return takesAtMost(16, long, () => {
    for (let run = 0; run < growth; run++) short()
  })
}
