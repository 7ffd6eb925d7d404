// Resource usage of processes, read from /proc: memory while they run, and total CPU time.

import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

export type Processes = Readonly<Record<string, number>>

const ticksPerSecond = 100

/**
 * Logs the memory of each process every `everyMs`, until `isOver`.
 * @returns the maximum and the last value of each, MiB.
 */
export async function watchMemory(options: {
  readonly processes: () => Processes
  readonly isOver: () => boolean
  readonly everyMs: number
}): Promise<string> {
  const largest: Record<string, number> = {}
  let line = ''
  while (!options.isOver()) {
    await sleep(options.everyMs)
    const sizes = Object.entries(options.processes()).flatMap(([name, pid]) => {
      const size = residentMiB(pid)
      if (size === null) return []
      largest[name] = Math.max(largest[name] ?? 0, size)
      return [`${name} ${size}`]
    })
    line = sizes.join(', ')
    console.log(`  memory, MiB: ${line}`)
  }
  const most = Object.entries(largest).map(([name, size]) => `${name} ${size}`)
  return `memory at most, MiB: ${most.join(', ')}; at the end: ${line}`
}

/** CPU seconds that each process has used so far, including its threads. */
export function cpuSeconds(processes: Processes): Record<string, number> {
  return Object.fromEntries(
    Object.entries(processes).map(([name, pid]) => {
      const stat = read(`/proc/${pid}/stat`)
      const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ') ?? []
      return [name, (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) / ticksPerSecond]
    }),
  )
}

/** Null when the process has ended. */
export function residentMiB(pid: number): number | null {
  const kibibytes = /^VmRSS:\s*(\d+)/m.exec(read(`/proc/${pid}/status`) ?? '')?.[1]
  return kibibytes === undefined ? null : Math.round(Number(kibibytes) / 1_024)
}

/** Null when the process has ended. */
function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    if (['ENOENT', 'ESRCH'].includes((cause as NodeJS.ErrnoException).code ?? '')) return null
    throw cause
  }
}
