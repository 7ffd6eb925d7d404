// Reads how many files, including connections, this process may have open.

import { readFileSync } from 'node:fs'

/** The limit in force, which Node has raised to the maximum; null when unlimited. */
export function readOpenFilesMax(): number | null {
  return process.platform === 'linux' ? parseLimits(readFileSync('/proc/self/limits', 'utf8')) : readLimitFromReport()
}

/** Parses `/proc/self/limits` in microseconds; Node's diagnostic report would take 35 ms at each start. */
function parseLimits(limits: string): number | null {
  const soft = /^Max open files +(\S+)/m.exec(limits)?.[1]
  if (soft === undefined) return readLimitFromReport()
  return soft === 'unlimited' ? null : Number(soft)
}

function readLimitFromReport(): number | null {
  const report = process.report as NodeJS.ProcessReport & { excludeNetwork: boolean }
  const { excludeNetwork } = report
  // Leave out the network interfaces: the report would look up their names, which may take seconds.
  report.excludeNetwork = true
  try {
    const { userLimits } = report.getReport() as { userLimits?: { open_files?: { soft: number | string } } }
    const soft = userLimits?.open_files?.soft
    return typeof soft === 'number' ? soft : null
  } finally {
    report.excludeNetwork = excludeNetwork
  }
}
