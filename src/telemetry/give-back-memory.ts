// Giving back memory that V8 keeps while nothing happens: the space for new objects at the size that loading modules or the
// last load had needed, and pages of the old space that are empty by now. It takes them again with the next load.

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

type Collect = (options: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void

/** Gives back memory of the calling thread's heap. It holds the thread for 20 to 60 ms, so no request should be waiting. */
export function giveBackMemory(): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as Collect
  setFlagsFromString('--no-expose-gc')
  // Only this kind of collection makes the space of new objects smaller and empties V8's pool of pages.
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}

/** Percent of what is alive that V8 may add before it collects. Its own choice for a large machine is 300 and more. */
const heapGrowthPercent = 160

/**
 * For a process that holds much for half a second and then none of it: what is alive when V8 looks is what it lets the heap
 * grow by, so that of 100 MiB a chunk it keeps 300. Once a process, early. No limit: what has to be held is held.
 */
export function growHeapSlowly(): void {
  setFlagsFromString(`--heap-growing-percent=${heapGrowthPercent}`)
}

const lookMsUsual = 5_000
/** Shares of the thread's CPU between two looks. */
const busyShare = 0.2
const quietShare = 0.05

/** Gives back once after each busy time, the start included, as soon as the thread has been quiet from one look to the next. */
export function giveBackWhenQuiet(lookMs = lookMsUsual, giveBack = giveBackMemory): void {
  let wasBusy = true
  let usedMicros = threadMicros()
  const look = () => {
    const share = (threadMicros() - usedMicros) / (lookMs * 1_000)
    if (share > busyShare) wasBusy = true
    if (wasBusy && share < quietShare) {
      wasBusy = false
      giveBack()
    }
    usedMicros = threadMicros()
  }
  setInterval(look, lookMs).unref()
}

function threadMicros(): number {
  const { user, system } = process.threadCpuUsage()
  return user + system
}
