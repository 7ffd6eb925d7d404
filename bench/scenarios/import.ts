// Measures a historical import with nothing else to do: from staged files to rows that publishing makes visible, with
// importer, front, worker and engine sharing all cores of the machine.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cpuSeconds as cpuOf } from '../../tests/soak/process-figures.ts'
import { importProcessed, prepareLargeImport } from '../../tests/support/large-import.ts'
import { startPennon } from '../../tests/support/pennon.ts'
import { mustSucceed } from '../../tests/support/pennon-command.ts'
import { residentMiB } from '../processes.ts'
import { micros, print } from '../report.ts'

const eventCount = 300_000

export async function importing(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'pennon-bench-'))
  const pennon = await startPennon()
  try {
    const { commands, preparedMs } = await prepareLargeImport(pennon, folder, eventCount)
    const { child, ended } = commands.start('run', '--rate', '1000000')
    const processes = { importer: child.pid!, serve: pennon.pid, ...pennon.childPids() }
    const before = cpuOf(processes)
    let after = before
    const largest: Record<string, number> = {}
    const startMs = performance.now()
    const processedMs = await importProcessed(pennon, eventCount, {
      hasEnded: () => child.exitCode !== null,
      onLook: () => {
        after = cpuOf(processes)
        if (child.exitCode !== null) return
        for (const [name, pid] of Object.entries(processes))
          largest[name] = Math.max(largest[name] ?? 0, residentMiB(pid))
      },
    })
    mustSucceed(await ended)
    const verifiedMs = performance.now() - startMs
    print({ name: 'rehearsal, with the start', value: `${perSecond(preparedMs)} records/s` })
    print({
      name: 'import, staged to queryable rows',
      value: `${perSecond(processedMs - startMs)} events/s`,
      aim: '≥ 20,000 events/s',
    })
    print({ name: '  until all of it is verified', value: `${(verifiedMs / 1_000).toFixed(1)} s` })
    for (const [name, seconds] of Object.entries(after))
      print({
        name: `  CPU per event, ${name}`,
        value: `${micros(((seconds - before[name]!) / eventCount) * 1e6)}, memory at most ${Math.round(largest[name]!)} MiB`,
      })
  } finally {
    await pennon.stop()
    rmSync(folder, { recursive: true })
  }
}

function perSecond(ms: number): number {
  return Math.round(eventCount / (ms / 1_000))
}
