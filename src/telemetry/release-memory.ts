// Gives back memory that V8 keeps while the process is idle: the space for new objects, still at the size that loading
// modules or the last load needed, and empty pages of the old space. V8 allocates them again under the next load.

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

type Collect = (options: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void

/** Gives back memory of the calling thread's heap. Blocks it for 20 to 60 ms, so no request should be waiting. */
export function releaseHeapMemory(): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as Collect
  setFlagsFromString('--no-expose-gc')
  // Only this kind of collection shrinks the space for new objects and empties V8's pool of pages.
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}

/** How far the heap may grow before V8 collects, in percent of the live heap. V8's choice on a large machine is 300+. */
const heapGrowthPercent = 160

/**
 * Makes V8 enlarge the heap in smaller steps, for a process that often holds a lot of memory for half a second, such as a
 * chunk of events or of an export. V8 sizes the heap by the objects alive when it looks, so it would keep 300 MiB for
 * chunks of 100 MiB. Call once per process, when its modules are loaded. This does not limit the heap, which still grows as
 * far as necessary.
 */
export function growHeapSlowly(): void {
  setFlagsFromString(`--heap-growing-percent=${heapGrowthPercent}`)
}

const lookMsUsual = 5_000
/** Shares of the thread's CPU time between two checks. */
const busyShare = 0.2
const quietShare = 0.05

/**
 * Gives memory back after each busy period, once the thread was quiet between two checks. The start counts as a busy
 * period.
 */
export function releaseMemoryWhenIdle(lookMs = lookMsUsual, giveBack = releaseHeapMemory): void {
  let wasBusy = true
  let usedMicros = readThreadMicros()
  const checkLoad = () => {
    const share = (readThreadMicros() - usedMicros) / (lookMs * 1_000)
    if (share > busyShare) wasBusy = true
    if (wasBusy && share < quietShare) {
      wasBusy = false
      giveBack()
    }
    usedMicros = readThreadMicros()
  }
  setInterval(checkLoad, lookMs).unref()
}

function readThreadMicros(): number {
  const { user, system } = process.threadCpuUsage()
  return user + system
}
